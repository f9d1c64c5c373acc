/* The plan: a policy resolved against this host and one command, as an ordered list of typed steps,
 * and the promises that those steps keep.
 *
 * A plan holds no descriptor, and no secret but what its caller puts into files of the box.
 * Printing it is `pale explain`; its digest is in the audit log; the same policy, command and host
 * give the same digest. The isolation backend executes the steps in order and knows nothing of
 * policies. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "base/err.h"
#include "confine/cgroup.h"
#include "confine/core_sched.h"
#include "confine/landlock.h"
#include "confine/nft.h"
#include "confine/rlimits.h"
#include "confine/speculation.h"
#include "plan/host.h"
#include "policy/policy.h"

/* Where the steps find things. The new root is a directory of the scratch tmpfs, bound onto itself,
 * and is the working directory while it is filled; what is beside it builds the box and is gone
 * with the old root. */
#define PLAN_SCRATCH ".."
#define PLAN_DATA    "../data" /* the one tmpfs that holds what is writable */

/* Where the broker opens TLS: its certificate authority, and the bundle with it if the host has no
 * bundle. */
#define TRUST_ALONE	 "/etc/pale-ca.pem"
#define TRUST_BUNDLE	 "/etc/pale-ca-bundle.pem"
/* What stands in the plan for the placeholder of a secret, which differs from run to run. */
/* SSH_AUTH_SOCK in the box: like /dev/log, where nothing of the policy's can be mounted over it. */
#define PLAN_AGENT	 "/dev/ssh-agent"
#define PLAN_PLACEHOLDER "(a placeholder of this run)"
/* And for what is in a file of the caller's. */
#define PLAN_GIVEN	 "(made for this run)"

enum step_type {
	STEP_ROOT,     /* the scratch tmpfs, and in it the new root */
	STEP_DATA,     /* tmpfs at PLAN_DATA: size_bytes, inodes */
	STEP_DIR,      /* directory at target: mode, own */
	STEP_FILE,     /* file at target: content, mode */
	STEP_SYMLINK,  /* link at target to content */
	STEP_BIND,     /* host source, recursively, at target; read-only unless device */
	STEP_SOURCE,   /* host source at PLAN_SCRATCH/s<index>, for STEP_VIEW and STEP_OVERLAY */
	STEP_SKELETON, /* in PLAN_SCRATCH/k<index>: a mount point `target` that the source lacks */
	STEP_VIEW,     /* read-only overlay of k<index> over s<index> at target */
	STEP_OVERLAY,  /* the same with an upper directory PLAN_DATA/u<index> */
	STEP_WRITABLE, /* directory PLAN_DATA/<content> at target: mode */
	STEP_TMPFS,    /* a tmpfs of its own at target: size_bytes, inodes, mode */
	STEP_HIDE,     /* an empty read-only file or directory over target */
	STEP_PROC,     /* a proc of the box's own pid namespace at target */
	STEP_DEVPTS,   /* likewise devpts */
	STEP_COVER,    /* a file that the supervisor fills (index: enum plan_view), over target */
	STEP_SOCKET,   /* a listening Unix socket of the box's user at target; goes out */
	STEP_READONLY, /* the tmpfs of the root itself becomes read-only */
};

struct step {
	enum step_type type;
	char *source;  /* on the host; absolute */
	char *target;  /* in the box; relative to the root */
	char *content; /* file content, link target, name in the scratch or data tmpfs */
	uint64_t size_bytes, inodes;
	unsigned index;
	unsigned mode;
	unsigned secret; /* STEP_FILE: its content is the placeholder of secret - 1; 0: of none */
	unsigned
		given; /* STEP_FILE: its content is that of the plan's file given - 1; 0: of none */
	bool own;      /* belongs to the box's user, not to its root */
	bool device;   /* a device node: devices stay usable on this one mount */
	bool is_file;
	bool nested;	 /* target lies in a mounted host directory: resolve it without links */
	bool swap_owner; /* root: the source's owner appears as the box's user */
	bool readonly;	 /* STEP_PROC: nothing in it can be written to */
	bool real; /* the source's path had no link when the plan was made, and may have none */
	bool of_policy; /* a place of the policy's files: what is in it is no toolchain's */
	bool of_kernel; /* STEP_FILE: the driver, which a zygote's fork has in its memory */
};

/* What tells programs how large the machine is, told for the box by the supervisor while it runs.
 */
enum plan_view {
	VIEW_MEMINFO,
	VIEW_CPUINFO,
	VIEW_STAT,
	VIEWS_OF_MACHINE,
	/* Where the broker opens TLS: */
	VIEW_CA_BUNDLE = VIEWS_OF_MACHINE, /* the host's certificate authorities and its own */
	VIEW_CA,			   /* its own alone */
	VIEW_JAVA,			   /* the bundle as Java reads it */
	VIEW_COUNT
};

/* A promise, one line of `pale explain`. */
enum axis { AXIS_FILES, AXIS_NETWORK, AXIS_KERNEL, AXIS_RESOURCES };
extern const char *const axis_names[];

struct promise {
	enum axis axis;
	char key[24];	     /* "memory" */
	char what[200];	     /* "512MiB for the whole box" */
	char mechanism[120]; /* "cgroup v1 memory" */
	char fallback[440];  /* in force instead of the best mechanism; empty if it is the best */
	char uncovered[260]; /* what that does not cover; empty if nothing */
	bool best_effort;    /* weaker than asked, and the policy allows it */
};

/* What runs in the box, and how it is connected. */
struct plan_command {
	char *program; /* absolute path, in the box, of what is executed */
	char **argv;   /* NULL-terminated */
	char **env;    /* NULL-terminated NAME=VALUE */
	char *cwd;     /* absolute, in the box */
	char *code;    /* what the audit log keeps as the code: -c text or the script's content; or
			  NULL */
	size_t code_len;
	bool tty;
};

/* A Landlock rule: what may be done below a path of the box. */
struct plan_rule {
	char *path;
	enum landlock_access access;
};

struct plan_collect {
	char *path;    /* in the box */
	char *name;    /* directory in the data tmpfs, or NULL: a tmpfs of its own at path */
	char *dest;    /* on the host */
	char **mounts; /* what is mounted in it, relative to it; NULL-terminated */
	uint64_t size_bytes;
};

struct plan_overlay {
	unsigned index; /* u<index> in the data tmpfs */
	char *path;	/* in the box */
	char *root;	/* on the host */
	/* Of the first entries at the top, those whose owner or group does not exist inside: the
	 * kernel refuses to copy them up (EOVERFLOW). */
	unsigned foreign;
};

/* Against side channels: see sidechannel.h. */
struct plan_sidechannel {
	unsigned asked; /* controls that the policy wants: bits 1 << enum speculation_control */
	unsigned speculation; /* those of them that the box has to ask the kernel for */
	struct speculation_host speculation_host; /* only if something is asked */
	bool core_asked;
	bool core_sched;		 /* it gets a core scheduling cookie of its own */
	enum core_sched_state core_host; /* only if asked */
};

/* What the command is if it is a kernel: see kernel.h. */
struct plan_kernel;
/* What the caller puts into the box for this run. The content is neither printed nor digested. */
struct plan_file {
	char *path; /* in the box */
	char *content;
};

struct plan {
	struct host host;
	struct step *steps;
	size_t nsteps, cap_steps;
	struct promise *promises;
	size_t npromises, cap_promises;
	struct plan_command command;
	struct plan_collect *collect;
	size_t ncollect;
	struct plan_overlay *overlays;
	size_t noverlays;

	struct plan_rule *rules; /* none: no Landlock */
	size_t nrules;

	struct policy_limits limits;
	struct rlimits rlimits;
	enum policy_profile profile;
	enum policy_watch watch_files;
	struct plan_sidechannel side;
	unsigned best_effort;
	char *user, *home;
	unsigned uid, gid;  /* inside */
	unsigned counts[4]; /* file entries by enum policy_access */
	bool user_range;    /* root: a range of host uids; else one uid mapped to itself */
	bool landlock;
	bool use_cgroup;
	bool join_cgroup; /* v1: the box's first process puts itself into its groups */
	struct cgroup_limits cgroup_limits; /* zero where a limit is not kept by a group */
	bool sample_memory, sample_cpu;	    /* kept by the supervisor's accounting */
	bool events;			    /* a seccomp listener reports what was refused */
	unsigned seccomp_watch;		    /* enum seccomp_watch */
	struct policy_network *network; /* a copy of the policy's, if it wants more than loopback;
					   or NULL, then nothing of it is set: */
	char *network_text;		/* its canonical JSON */
	char *agent_socket;		/* the caller's ssh agent, if the box may use it; or NULL */
	char *known_hosts; /* then: the keys of its hosts, lines of an ssh_known_hosts file */
	enum nft_set nft;  /* how connections come to the broker */
	bool intercepts;   /* the broker may open TLS */
	char *ca_bundle;   /* then: the host's certificate authorities, which the box sees with the
			      broker's; TRUST_BUNDLE if the host has none */
	char *java_store;  /* likewise as Java reads them; or NULL */
	const struct plan_kernel
		*kernel;	       /* the command is one: it gets the kernel channel; or NULL */
	struct policy_session session; /* then; its imports are in the command */
	unsigned affinity;	       /* processors the box may run on; 0: all */
	struct plan_file *files;       /* the caller's, made for this run */
	size_t nfiles;
	char digest[65]; /* after plan_settle() */
};

/* What the caller asked to run. Strings are borrowed; NULL where not given. */
struct plan_request {
	const struct policy *policy;
	const char *const *argv; /* the command, or the script and its arguments */
	const char *code;	 /* -c: run it with `lang` */
	const char *lang;
	const char *cwd;  /* the caller's working directory */
	char *const *env; /* the caller's environment: to find the command, never passed on */
	bool session;	  /* argv and code are not given: the kernel that the policy names is run */
	bool tty;
	bool ordered;		       /* the order between stdout and stderr matters */
	const struct pale_file *files; /* to be made in the box */
	size_t nfiles;
};

int plan_make(const struct plan_request *req, struct plan **ret, struct pale_err *err) _must_check_;
/* Puts the promises into words; before anything below. Apart from plan_make(), so that a run can do
 * it while its box is being built. */
int plan_promise(struct plan *p, struct pale_err *err) _must_check_;
/* The plan is final: what is the same in all runs of it is found out once. */
int plan_settle(struct plan *p, struct pale_err *err) _must_check_;
void plan_free(struct plan *p);
static inline void plan_freep(struct plan **p)
{
	plan_free(*p);
}
#define _cleanup_plan_ _cleanup_(plan_freep)

/* SHA-256 in hex over the canonical JSON of the plan (steps, promises, limits, command). */
int plan_digest(const struct plan *p, char ret[static 65], struct pale_err *err) _must_check_;
/* The plan as JSON; NULL if out of memory. A new reference. */
json_t *plan_to_json(const struct plan *p);
/* One line a promise, for people. */
void plan_print(const struct plan *p, FILE *out, bool colour, bool steps);

/* Is the set-up child put into its control group from outside, by systemd, while it runs? Then it
 * waits until that is done. */
static inline bool plan_waits_for_group(const struct plan *p)
{
	return p->use_cgroup && p->host.cgroup.kind == CGROUP_V2_SYSTEMD;
}

const char *step_name(enum step_type type);
