/* The policy: what a box may touch. One data model, filled from YAML, JSON or command-line flags.
 *
 * What is absent is denied, or limited by the default in the options table (options.c), which is
 * the one list from which the loaders, the JSON Schema, docs/policy.md and the tests are made. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/network.h"

enum policy_access {
	ACCESS_READ,	/* read-only view of `from` */
	ACCESS_WRITE,	/* a fresh, size-capped directory; with `collect`, copied to the host at the
			   end */
	ACCESS_OVERLAY, /* copy on write over `from`; the changes are kept for review */
	ACCESS_HIDE,	/* a path inside another entry that must not be seen */
};

struct policy_file {
	char *path;    /* in the box: absolute, normalised, no "..", any byte but NUL */
	char *from;    /* on the host: absolute, may hold ".."; NULL for write and hide */
	char *collect; /* on the host: absolute, may hold ".."; or NULL */
	enum policy_access access;
	uint64_t size_bytes; /* write: the cap; 0: shares the disk limit with the rest */
	char *where;	     /* "policy.yaml:7:5" or "--ro": where it was asked for, for messages */
};

enum policy_profile { PROFILE_DEFAULT, PROFILE_STRICT, PROFILE_NESTED };
enum policy_speculation { SPECULATION_DEFAULT, SPECULATION_STRICT };

/* Which file accesses are reported as events besides those that the kernel reports by itself. */
enum policy_watch {
	WATCH_OFF,    /* none */
	WATCH_WRITES, /* refused opens for writing and creation */
	WATCH_ALL,    /* every refused open */
};

struct policy_limits {
	uint64_t wall_ms;
	uint64_t cpu_ms;
	uint64_t cpus_milli; /* 1000 is one processor */
	uint64_t memory_bytes;
	uint64_t processes;
	uint64_t open_files; /* a process */
	uint64_t file_size_bytes;
	uint64_t disk_bytes;	     /* all writable places together */
	uint64_t inodes;	     /* likewise */
	uint64_t output_bytes;	     /* kept of stdout and stderr each, half head, half tail */
	uint64_t output_total_bytes; /* at this many the run is ended */
};

/* Sessions: a box with a kernel in it that stays. The limits on time and output then are those of
 * one execution. */
enum policy_kernel { KERNEL_PYTHON, KERNEL_NODE, KERNEL_BASH, KERNEL_IPYTHON };
struct policy_session {
	enum policy_kernel kernel;
	char **imports;	   /* NULL-terminated, or NULL */
	unsigned rollback; /* enum option_bool; not given: yes */
	uint64_t grace_ms; /* from the SIGINT to what comes after it */
	uint64_t idle_ms;
	uint64_t lifetime_ms;
};

struct policy_env {
	char *name;
	char *value;
};

/* Items that `best_effort` may name: bits in policy.best_effort. */
enum policy_item {
	ITEM_CPUS = 1 << 0,
	ITEM_CPU = 1 << 1,
	ITEM_MEMORY = 1 << 2,
	ITEM_PROCESSES = 1 << 3,
	ITEM_LANDLOCK = 1 << 4,
	ITEM_EVENTS = 1 << 5, /* events of denied calls and blocked network attempts */
	ITEM_SPECULATION = 1 << 6,
	ITEM_L1D_FLUSH = 1 << 7,
	ITEM_CORE_SCHEDULING = 1 << 8,
};

struct policy {
	char *isolation; /* "process" */
	char *image;	 /* "host", or a directory that holds a root file system */
	char *user;	 /* name inside */
	struct policy_file *files;
	size_t nfiles;
	struct policy_limits limits;
	enum policy_profile profile;
	enum policy_speculation speculation;
	unsigned l1d_flush, core_scheduling; /* enum option_bool */
	enum policy_watch watch_files;
	unsigned best_effort; /* enum policy_item */
	struct policy_env *env;
	size_t nenv;
	struct policy_network network;
	struct policy_session session;
};

/* A policy with every default of the options table: the shipped policy `compute`. */
int policy_new(struct policy **ret, struct pale_err *err) _must_check_;
int policy_copy(struct policy **ret, const struct policy *from, struct pale_err *err) _must_check_;
void policy_free(struct policy *p);
static inline void policy_freep(struct policy **p)
{
	policy_free(*p);
}
#define _cleanup_policy_ _cleanup_(policy_freep)

/* Loads a file over p: what the file sets replaces what p has, lists are added to. YAML unless the
 * name ends in .json. `name` is a path, "-" for standard input, or the name of a shipped policy
 * ("analysis") if it has no slash and no dot. Relative `from` and `collect` are relative to the
 * file's directory (shipped policies and policy_set(): to the working directory). On failure p is
 * unchanged and the message starts with file:line:column. */
int policy_load(struct policy *p, const char *name, struct pale_err *err) _must_check_;
int policy_load_memory(struct policy *p, const char *text, size_t len, const char *name,
		       const char *base_dir, bool json, struct pale_err *err) _must_check_;

/* The same as policy_load(), telling each error to report() as well, not only the first. */
int policy_load_report(struct policy *p, const char *name,
		       void (*report)(const struct pale_err *e, void *data), void *data,
		       struct pale_err *err) _must_check_;

/* Sets one scalar by its dotted key ("limits.memory", "512MiB"); where is the flag's name. */
int policy_set(struct policy *p, const char *key, const char *value, const char *where,
	       struct pale_err *err) _must_check_;
/* Adds a file entry; strings are copied. path may be relative to the working directory, and means
 * then the same absolute path as on the host; NULL means the same as from or, for write, collect.
 */
int policy_add_file(struct policy *p, enum policy_access access, const char *path, const char *from,
		    const char *collect, uint64_t size_bytes, const char *where,
		    struct pale_err *err) _must_check_;
int policy_add_env(struct policy *p, const char *name, const char *value,
		   struct pale_err *err) _must_check_;

/* Adds a rule in one text: "[METHODS ][PROTOCOL://]HOST[:PORT][/PATH-GLOB]", where HOST may be an
 * address or a range (of IPv6: in brackets), or "preset:NAME"; where is the flag's name. */
int policy_add_rule(struct policy *p, bool deny, const char *text, const char *where,
		    struct pale_err *err) _must_check_;
/* Adds a secret in one text: "NAME[=SOURCE]@HOST[,HOST...][,header=NAME|,query=NAME|,basic]". NAME
 * is a variable in the box, or an absolute path there; SOURCE as value_from, if left out the
 * caller's variable of that name; the place, if left out, is the header authorization. */
int policy_add_secret(struct policy *p, const char *text, const char *where,
		      struct pale_err *err) _must_check_;

/* Adds a published port in one text: "PORT", "HOSTPORT:PORT" or "PATH:PORT". */
int policy_add_publish(struct policy *p, const char *text, const char *where,
		       struct pale_err *err) _must_check_;

/* Checks what concerns several keys at once; called by the plan. */
int policy_check(const struct policy *p, struct pale_err *err) _must_check_;
/* Checks that nothing is missing which another file or flag might still have given: called by the
 * plan, after policy_check(). */
int policy_check_whole(const struct policy *p, struct pale_err *err) _must_check_;

/* One line a point in which `flags` allows more than `file`, for the audit log; the count. */
struct json_t;
int policy_widened(const struct policy *file, const struct policy *flags, char lines[][160],
		   size_t max);

/* The canonical JSON text of a policy (sorted keys, every default written out), which is what is
 * hashed and what another process is given; loading it gives the same policy. Owned by the caller.
 */
int policy_to_json(const struct policy *p, char **ret, struct pale_err *err) _must_check_;
/* The same of its network part alone. */
int policy_network_to_json(const struct policy *p, char **ret, struct pale_err *err) _must_check_;
/* Where each of its rules, then each of its secrets was asked for, in their order, as a JSON list
 * of texts: the canonical text has no places, and what reads it would name its own.
 * policy_network_take_places() gives them to those that were read from that text; -EINVAL: they are
 * not theirs. */
int policy_network_places(const struct policy_network *n, char **ret,
			  struct pale_err *err) _must_check_;
int policy_network_take_places(struct policy_network *n, const struct json_t *places) _must_check_;
/* The same as YAML for people, in the order of the options table. */
int policy_to_yaml(const struct policy *p, char **ret, struct pale_err *err) _must_check_;
/* SHA-256 of the canonical text in hex. */
int policy_digest(const struct policy *p, char ret[static 65], struct pale_err *err) _must_check_;

/* The generated texts; owned by the caller. policy_init_text() is a commented policy to start from:
 * a shipped one, or with NULL one with every key and its default. */
int policy_init_text(const char *name, char **ret, struct pale_err *err) _must_check_;
int policy_schema_json(char **ret, struct pale_err *err) _must_check_;
int policy_docs_markdown(char **ret, struct pale_err *err) _must_check_;
