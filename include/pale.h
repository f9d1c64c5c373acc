/* libpale: run code that nobody has reviewed, in a sandbox that holds.
 *
 *	struct pale_policy *policy;
 *	struct pale_result *result;
 *	struct pale_err err;
 *	const char *argv[] = {"python3", "-c", "print(6 * 7)", NULL};
 *	struct pale_command command = {.size = sizeof(command), .argv = argv};
 *
 *	if (pale_policy_new(&policy, &err) < 0 ||
 *	    pale_policy_set(policy, "limits.wall", "5s", &err) < 0 ||
 *	    pale_run(policy, &command, NULL, &result, &err) < 0)
 *		return fprintf(stderr, "%s\n", err.message), 1;
 *	printf("%s\n", pale_result_json(result));
 *
 * Every function that can fail returns 0 (or a count) or a negative enum pale_code, and fills in
 * the caller's struct pale_err, which may be NULL. Nothing here prints, exits, installs signal
 * handlers (unless asked to) or keeps global state. An object is not shared between threads
 * without the caller's own lock; different objects may be used from different threads at the same
 * time.
 *
 * Structures that the caller fills in begin with their size, so that later versions can add to
 * them: zero the rest. No privilege is needed beyond what `pale doctor` names. */
#ifndef PALE_H
#define PALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PALE_EXPORT __attribute__((visibility("default")))

/* --- errors ------------------------------------------------------------------------------ */

/* What went wrong, by what the caller can do about it. */
enum pale_code {
	PALE_OK = 0,
	PALE_E_USAGE = 1,  /* the call or the command line is wrong */
	PALE_E_POLICY = 2, /* the policy is wrong; the message has file, line and column */
	PALE_E_HOST = 3,   /* this host cannot enforce what was asked; the message has the remedy */
	PALE_E_SYSTEM = 4, /* a system call failed; see sys */
	PALE_E_NOMEM = 5,  /* out of memory */
	PALE_E_AUDIT = 6,  /* the audit log cannot be written or does not verify; nothing was run */
	PALE_E_NOTFOUND = 7, /* no such run, file or command */
	PALE_E_CONFLICT = 8, /* the host's files changed meanwhile, or are held back */
};

/* Owned by the caller; nothing in it is to be freed. */
struct pale_err {
	enum pale_code code;
	int sys;	   /* errno, or 0 */
	char stage[12];	   /* policy, plan, isolation, confine, supervise, files, audit */
	char message[492]; /* a line or a few, without a final newline, safe for a terminal */
};

PALE_EXPORT const char *pale_version(void);

/* --- policies ---------------------------------------------------------------------------- */

/* What a box may touch. What a policy does not grant is denied, or has a safe limit. */
struct pale_policy;

/* A policy with every default: the shipped policy `compute`. To be released with
 * pale_policy_free(). */
PALE_EXPORT int pale_policy_new(struct pale_policy **ret, struct pale_err *err);
PALE_EXPORT int pale_policy_copy(struct pale_policy **ret, const struct pale_policy *from,
				 struct pale_err *err);
PALE_EXPORT void pale_policy_free(struct pale_policy *p);

/* Loads a file over p: YAML, or JSON if its name ends in .json; "-" is standard input; a name
 * without slash and dot is a shipped policy. Lists are added to. On failure (PALE_E_POLICY) p is
 * unchanged. */
PALE_EXPORT int pale_policy_load(struct pale_policy *p, const char *name, struct pale_err *err);
/* The same from memory; name is for messages, and base_dir (NULL: the working directory) for
 * relative paths. */
PALE_EXPORT int pale_policy_load_text(struct pale_policy *p, const char *text, size_t len,
				      const char *name, const char *base_dir, bool json,
				      struct pale_err *err);
/* "analysis", or the names of all files that were loaded, joined by " + "; "compute" if none was.
 * It stands in the log. Borrowed; safe for a terminal. */
PALE_EXPORT const char *pale_policy_name(const struct pale_policy *p);
/* What the following changes to p are called in messages, instead of the function's name:
 * "--memory", a line of the caller's own configuration. NULL: the function's name again. Cut at 63
 * bytes. */
PALE_EXPORT void pale_policy_origin(struct pale_policy *p, const char *where);
/* Sets one value by its dotted key, as a file would: ("limits.memory", "512MiB"). */
PALE_EXPORT int pale_policy_set(struct pale_policy *p, const char *key, const char *value,
				struct pale_err *err);
/* File entries. Host paths may be relative to the working directory; path is in the box, NULL means
 * the same as on the host. All strings are copied. */
PALE_EXPORT int pale_policy_read(struct pale_policy *p, const char *from, const char *path,
				 struct pale_err *err);
PALE_EXPORT int pale_policy_overlay(struct pale_policy *p, const char *from, const char *path,
				    struct pale_err *err);
/* A writable directory; size_bytes 0: under the disk limit only; collect (or NULL): the host
 * directory to which what is in it is copied when the run ends. */
PALE_EXPORT int pale_policy_write(struct pale_policy *p, const char *path, const char *collect,
				  uint64_t size_bytes, struct pale_err *err);
PALE_EXPORT int pale_policy_hide(struct pale_policy *p, const char *path, struct pale_err *err);
PALE_EXPORT int pale_policy_env(struct pale_policy *p, const char *name, const char *value,
				struct pale_err *err);
/* Network rules and secrets in one text: "[METHODS ][PROTOCOL://]HOST[:PORT][/PATH-GLOB]" or (allow
 * only) "preset:NAME"; "NAME[=SOURCE]@HOST[,HOST...][,header=NAME|,query=NAME|,basic]". The value
 * of a secret is never in the text: SOURCE is "env:NAME", "file:PATH", "command:SHELL LINE" or
 * "fd:N". */
PALE_EXPORT int pale_policy_allow(struct pale_policy *p, const char *rule, struct pale_err *err);
PALE_EXPORT int pale_policy_deny(struct pale_policy *p, const char *rule, struct pale_err *err);
PALE_EXPORT int pale_policy_secret(struct pale_policy *p, const char *secret, struct pale_err *err);
/* A server in the box that the host can reach: "PORT", "HOSTPORT:PORT" or "PATH:PORT". */
PALE_EXPORT int pale_policy_publish(struct pale_policy *p, const char *port, struct pale_err *err);
/* The canonical JSON of p; to be freed by the caller. */
PALE_EXPORT int pale_policy_json(const struct pale_policy *p, char **ret, struct pale_err *err);
/* The same as YAML for people, after checking what concerns several keys at once (PALE_E_POLICY).
 */
PALE_EXPORT int pale_policy_yaml(const struct pale_policy *p, char **ret, struct pale_err *err);

/* Checks a file (named as for pale_policy_load()) without using it: report (or NULL) is told of
 * each error, err of one; and of what is no error of the file but would not launch on this host
 * for this user, as a warning: a source of `files` that is not there. A message that is about a
 * line begins with "NAME:LINE:COLUMN: ". 0 if there were warnings only. */
PALE_EXPORT int pale_policy_check(const char *name,
				  void (*report)(void *arg, bool warning, const char *message),
				  void *arg, struct pale_err *err);
/* Texts; to be freed by the caller: a commented policy to start from (a shipped one by its name, or
 * with NULL every key with its default), the JSON Schema, the documentation of all keys in
 * Markdown. */
PALE_EXPORT int pale_policy_starter(const char *name, char **ret, struct pale_err *err);
PALE_EXPORT int pale_policy_schema(char **ret, struct pale_err *err);
PALE_EXPORT int pale_policy_docs(char **ret, struct pale_err *err);

/* The presets of network rules, as JSON, to be freed: with NULL all of them ([{name, file,
 * hosts}]), else one, by its name or file ({name, file, text, rules}). file is null for one that is
 * part of Pale.
 */
PALE_EXPORT int pale_policy_presets(const char *name, char **ret, struct pale_err *err);

/* One key of the policy, for command lines and forms. Strings are static. */
struct pale_policy_key {
	const char *key;      /* as pale_policy_set() takes it */
	const char *flag;     /* the name of the option of `pale run`, without dashes; or NULL */
	const char *value;    /* what kind of value: "SIZE", "TIME", "COUNT", "ITEM", "NAME" */
	const char *fallback; /* the default as people write it, or NULL */
	const char *doc;      /* one or two sentences */
	char words[96];	      /* "a|b|c" if only these are possible, or "" */
};
/* The key at this index (from 0); false: there are no more. */
PALE_EXPORT bool pale_policy_key(size_t index, struct pale_policy_key *ret);

/* --- commands and plans ------------------------------------------------------------------ */

/* A file made for one run, which belongs to the box's user alone (mode 0600). What is in it is in
 * no log and no plan: an address or a key that the caller made for this box and nothing else. */
struct pale_file {
	const char *path;    /* in the box, absolute, in HOME, /tmp or another writable place */
	const char *content; /* text */
};

/* What to run. All strings are borrowed for the call. */
struct pale_command {
	size_t size; /* sizeof(struct pale_command) */
	/* NULL-terminated: a command, a script with a known suffix, or "-" for code on standard
	 * input; with `code`, further arguments for it. */
	const char *const *argv;
	const char *code; /* code to run in `lang`, or NULL */
	const char *lang; /* "python" (if NULL), "node", "bash", ... */
	const char *cwd;  /* the caller's directory, absolute; NULL: the working directory */
	char *const *env; /* the caller's environment, in which the command's toolchain is looked
			   * for (PATH, VIRTUAL_ENV); NULL: environ. None of it reaches the box */
	bool tty;	  /* give the command a terminal */
	const struct pale_file *files; /* that the box gets besides what the policy shows */
	size_t nfiles;
};

/* A policy resolved against this host and one command. */
struct pale_plan;

/* PALE_E_HOST: something cannot be enforced here. PALE_E_NOTFOUND: no such command or file (sys is
 * EACCES if it is there and cannot be run). policy and command are not needed any more afterwards.
 */
PALE_EXPORT int pale_plan_new(const struct pale_policy *policy, const struct pale_command *command,
			      struct pale_plan **ret, struct pale_err *err);
PALE_EXPORT void pale_plan_free(struct pale_plan *p);
/* SHA-256 in hex: the same policy, command and host give the same. */
PALE_EXPORT int pale_plan_digest(const struct pale_plan *p, char ret[65], struct pale_err *err);
/* The promises, the steps and the digest; to be freed by the caller. */
PALE_EXPORT int pale_plan_json(const struct pale_plan *p, char **ret, struct pale_err *err);
#define PALE_PRINT_COLOUR 1u /* of all functions that print */
#define PALE_PRINT_STEPS  2u
PALE_EXPORT void pale_plan_print(const struct pale_plan *p, FILE *out, unsigned flags);

/* What this host can enforce for this user, tried for real: each check with its remedy. 1: the
 * default policy can be enforced; 0: it cannot. JSON to *ret (to be freed), or lines to out; each
 * may be NULL. */
/* The calling process must have a single thread: namespaces and filters are tried in forks of it.
 */
PALE_EXPORT int pale_doctor(char **ret, FILE *out, unsigned flags, struct pale_err *err);

/* --- verifying ---------------------------------------------------------------------------- */

struct pale_verify_options {
	size_t size;	     /* sizeof(struct pale_verify_options) */
	const char *axis;    /* only attacks on this one; NULL: all four */
	const char *attacks; /* only these, by names with commas between; NULL: all */
	unsigned parallel;   /* boxes at a time, at most 8; 0: one a processor */
	/* Told of each box that has ended, and at least each second; not 0: enough. May be NULL. */
	int (*progress)(void *arg, size_t done, size_t all);
	void *arg;
};
/* Runs every attack of the corpus in boxes made from the policy, and judges each promise of the
 * plan by what they came to (docs/verify.md). 1: all that was tried held; 0: something is broken;
 * 2: what became of some attack was not seen, or none could be tried. *ret: the report, a JSON
 * object, to be freed. Nothing of the caller's is changed, and no log is left; it takes up to two
 * minutes. The calling process must have a single thread: $PALE_STATE_DIR and $CANARY are others
 * meanwhile. It has a new session keyring from then on: what needs the keys of its old one calls
 * this in a child. PALE_E_NOTFOUND: the program with the attacks is not installed; PALE_E_HOST,
 * PALE_E_POLICY: no box can be made; PALE_E_USAGE: there is no such attack, or none is selected. */
PALE_EXPORT int pale_verify(const struct pale_policy *policy,
			    const struct pale_verify_options *options, char **ret,
			    struct pale_err *err);
/* The report for people; with PALE_PRINT_ATTACKS each attack has a line. */
#define PALE_PRINT_ATTACKS 4u
PALE_EXPORT void pale_verify_print(const char *report, FILE *out, unsigned flags);
/* What attacks there are: a JSON list of {attack, axis, promise, gain, source, ...}, to be freed.
 */
PALE_EXPORT int pale_verify_attacks(char **ret, struct pale_err *err);

#define PALE_ID_SIZE 27 /* of a run's id with its final NUL */

/* --- runs -------------------------------------------------------------------------------- */

enum pale_stream { PALE_STDOUT, PALE_STDERR };

struct pale_run_options {
	size_t size;	     /* sizeof(struct pale_run_options) */
	bool use_fds;	     /* the three descriptors below count; else: no input, and the output
			      * is kept unless on_output takes it */
	int in, out, err;    /* borrowed; -1: none */
	bool keep_output;    /* head and tail of the output are kept for the result */
	bool ordered;	     /* so that the order between stdout and stderr is exact */
	bool in_process;     /* pale_run() only: supervise in this process, which must have a single
			      * thread and does nothing else meanwhile; SIGPIPE is then ignored in it */
	bool handle_signals; /* with in_process: SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH are for
			      * the box while it runs */
	/* Called from pale_run() or pale_box_dispatch(), in the caller's thread. on_output is told
	 * what comes on a stream that has no descriptor above. */
	void (*on_output)(void *arg, enum pale_stream stream, const char *data, size_t len);
	void (*on_event)(void *arg, const char *json); /* a line of the audit log */
	void *arg;
	/* The policy before the caller's own changes to it, if they are to be told apart in the
	 * log: each point in which `policy` grants more is logged as widened. */
	const struct pale_policy *base_policy;
	/* With handle_signals, where the command is one that lives on when it is interrupted: each
	 * SIGINT is the command's, and however many come, none ends the box. */
	bool interrupts_only;
	unsigned grace_ms; /* with handle_signals: how long the command has to end after SIGTERM or
			    * SIGHUP; 0: 5000 */
	int parent_pidfd;  /* with in_process: the box is destroyed when this process has ended;
			    * borrowed; 0: none */
};

/* How a run ended. To be released with pale_result_free(). */
struct pale_result;

/* Runs one command to its end. options may be NULL. 0: it ran, and *ret tells how it ended, which
 * may be that Pale failed half-way (outcome "failed"; err says why). Negative: nothing ran, or its
 * supervisor was lost half-way (killed), and the box with it. */
PALE_EXPORT int pale_run(const struct pale_policy *policy, const struct pale_command *command,
			 const struct pale_run_options *options, struct pale_result **ret,
			 struct pale_err *err);

/* The same without waiting, for programs with an event loop and threads: the supervisor is a
 * process of its own (libexec/pale/pale-box, or the absolute path in $PALE_BOX_PROGRAM), and dies
 * with its box if the caller does. The caller's signal handlers and other children are left alone;
 * a SIGCHLD comes when the supervisor ends. What can be told at once is (PALE_E_USAGE,
 * PALE_E_POLICY); all else that keeps the command from running comes from pale_box_dispatch(). */
struct pale_box;
PALE_EXPORT int pale_box_start(const struct pale_policy *policy, const struct pale_command *command,
			       const struct pale_run_options *options, struct pale_box **ret,
			       struct pale_err *err);
/* Polls readable when pale_box_dispatch() has something to do. Borrowed. */
PALE_EXPORT int pale_box_fd(const struct pale_box *box);
/* The id of its run; "" until pale_box_dispatch() has heard it, which is before the code starts. As
 * long as the box. */
PALE_EXPORT const char *pale_box_id(const struct pale_box *box);
/* Calls the callbacks for what has come, without waiting. 1: the box has ended; 0: not yet.
 * Negative, for good: nothing ran, or the supervisor was lost (killed), and the box with it. Output
 * that is not taken makes the command wait, never its supervisor; events wait in bounded memory,
 * and beyond that are counted in one of kind "events.suppressed". Not to be called from a callback.
 */
PALE_EXPORT int pale_box_dispatch(struct pale_box *box, struct pale_err *err);
/* Dispatches until it has ended, and hands over the result. */
PALE_EXPORT int pale_box_wait(struct pale_box *box, struct pale_result **ret, struct pale_err *err);
/* A signal for the command's process group; the size of its terminal; the end of all of it. */
PALE_EXPORT int pale_box_signal(struct pale_box *box, int signal_number, struct pale_err *err);
PALE_EXPORT int pale_box_resize(struct pale_box *box, unsigned short rows, unsigned short columns,
				struct pale_err *err);
PALE_EXPORT int pale_box_destroy(struct pale_box *box, struct pale_err *err);
/* Ends the box if it still runs, and waits for that. */
PALE_EXPORT void pale_box_free(struct pale_box *box);

/* --- running boxes, of this user ----------------------------------------------------------- */

/* These speak to the box's supervisor over its control socket (docs/control-protocol.md), which a
 * session has, and a box whose policy allows something of the network. They wait for its answer, at
 * most half a minute. A box is named by the id of its run. */

/* The id that ref means: an id, or a unique beginning of that of a running box; "last": the newest
 * with a control socket; NULL: the one of these that runs. PALE_E_NOTFOUND: there is none such;
 * PALE_E_USAGE: there are several. */
PALE_EXPORT int pale_box_find(const char *ref, char ret[PALE_ID_SIZE], struct pale_err *err);
/* What it is, as a JSON object (to be freed by the caller): id, policy, command, pid,
 * supervisor_pid, started, state, limits, usage so far, commands. */
PALE_EXPORT int pale_box_info(const char *id, char **ret, struct pale_err *err);

/* The rules in force, likewise: {revision, rules: [{rule, deny, text, entry, preset, reason,
 * counters}], unmatched_blocked}. `rule` is a number that stays the rule's own. */
PALE_EXPORT int pale_box_network_show(const char *id, char **ret, struct pale_err *err);

/* Each list ends with a NULL, or is NULL: it is empty. */
struct pale_network_change {
	size_t size; /* sizeof(struct pale_network_change) */
	/* Rules, as pale_policy_allow() takes them; presets are read here, with the caller's
	 * configuration, and stand for the rules that they are now. */
	const char *const *allow;
	const char *const *deny;
	/* What goes: the number of a rule ("3"), "preset:NAME", or the form of a rule, in which
	 * what is left out is any: all rules, allowing or denying, that it covers. */
	const char *const *remove;
	const char
		*reason;   /* of the rules in deny: shown to the program that is refused; or NULL */
	uint64_t revision; /* only if the rules are still those of this revision; 0: whatever they
			      are */
};
/* Changes them all or not at all. On return they are in force and in the log, and connections that
 * are not allowed any more are ended. *ret (may be NULL): {revision, effect, added, removed}.
 * PALE_E_POLICY, PALE_E_USAGE: a rule is wrong; PALE_E_NOTFOUND: nothing is covered by what is to
 * be removed, or the box has ended; PALE_E_CONFLICT: it is at another revision, or ends;
 * PALE_E_HOST: not while a box runs. Secrets cannot be added to a box that runs. */
PALE_EXPORT int pale_box_network_change(const char *id, const struct pale_network_change *change,
					char **ret, struct pale_err *err);

PALE_EXPORT void pale_result_free(struct pale_result *r);
/* "exit", "signal", "wall time", "cpu time", "memory", "file size", "output", "interrupted",
 * "destroyed", "failed". Strings live as long as the result. */
PALE_EXPORT const char *pale_result_outcome(const struct pale_result *r);
/* As `pale run` exits: the command's status, 128+n, 124 (a limit), 125 (Pale failed, or
 * the command's 0 when results could not be collected or kept), 126, 127. */
PALE_EXPORT int pale_result_exit_status(const struct pale_result *r);
/* One line for people, with the figures of a limit. */
PALE_EXPORT const char *pale_result_summary(const struct pale_result *r);
PALE_EXPORT const char *pale_result_audit_id(const struct pale_result *r);
/* How many: limits hit (whether or not one ended it), different attempts that were blocked,
 * processes that still ran when the command ended and were killed, overlays with changes kept for
 * review, files that were to be collected and were not, overlays in whose top directory are files
 * of another owner or group than the caller's, which the code could only replace, not change. */
enum pale_count {
	PALE_COUNT_LIMITS,
	PALE_COUNT_BLOCKED,
	PALE_COUNT_LEFTOVER,
	PALE_COUNT_CHANGES,
	PALE_COUNT_REFUSED,
	PALE_COUNT_UNCHANGEABLE,
};
PALE_EXPORT uint64_t pale_result_count(const struct pale_result *r, enum pale_count what);
/* The kept output of a stream, as it came (head and tail if cut); NULL if none was kept. */
PALE_EXPORT const char *pale_result_output(const struct pale_result *r, enum pale_stream stream,
					   size_t *ret_len);
/* Everything: outcome, output, usage, limits hit, blocked attempts, changes, audit id. NULL if out
 * of memory. */
PALE_EXPORT const char *pale_result_json(struct pale_result *r);

/* --- sessions ------------------------------------------------------------------------------ */

/* A session is a box that stays, with a kernel in it: an interpreter that executes one piece of
 * code after the other and keeps its variables (docs/sessions.md). It has a supervisor of its own
 * and outlives whoever started it; policy key `session` says which kernel, and when it ends by
 * itself. */

struct pale_session_options {
	size_t size;	  /* sizeof(struct pale_session_options) */
	const char *name; /* by which it can be found: letters, digits, `_`, `-`, `.`; or NULL */
	const char *cwd;  /* as in struct pale_command */
	char *const *env; /* likewise */
	const struct pale_policy *base_policy; /* as in struct pale_run_options */
	enum {
		PALE_POOL_IF_ANY,
		PALE_POOL_NEVER,
		PALE_POOL_ONLY
	} pool; /* whether it may, or has
		 * to, come from a pool */
};
/* Starts one and waits until it is ready. ret: the id of its run. PALE_E_CONFLICT: the name is
 * taken; PALE_E_SYSTEM: the kernel ended before it was ready, and the message has what it said. */
PALE_EXPORT int pale_session_new(const struct pale_policy *policy,
				 const struct pale_session_options *options, char ret[PALE_ID_SIZE],
				 struct pale_err *err);

/* A connection to a running session; several may be open, in several processes. One that is closed
 * ends nothing. */
struct pale_session;
/* ref: a name, an id, a unique beginning of one, "last", or NULL: the only one. */
PALE_EXPORT int pale_session_open(const char *ref, struct pale_session **ret, struct pale_err *err);
/* pale_session_new() and pale_session_open() in one. */
PALE_EXPORT int pale_session_start(const struct pale_policy *policy,
				   const struct pale_session_options *options,
				   struct pale_session **ret, struct pale_err *err);
/* Whether it came from a pool. */
PALE_EXPORT bool pale_session_warm(const struct pale_session *s);
PALE_EXPORT void pale_session_close(struct pale_session *s);
PALE_EXPORT const char *pale_session_id(const struct pale_session *s);

struct pale_exec_options {
	size_t size;	     /* sizeof(struct pale_exec_options) */
	uint64_t timeout_ms; /* 0: limits.wall of the policy */
	int rollback;	     /* 1: hold the state before it, -1: do not, 0: as the policy says */
	/* Each event as it comes, a JSON object: {n, type, ...} (docs/control-protocol.md). Returns
	 * not 0 to leave: the execution goes on without us. */
	int (*on_event)(void *arg, const char *json);
	/* Told once, before any event: the number of the execution. */
	void (*on_id)(void *arg, uint32_t execution);
	void *arg;
	/* Called whenever wake_fd polls readable while the supervisor is waited for: a signalfd, a
	 * terminal, an epoll descriptor of several. It may speak to the session over another
	 * connection (to interrupt, to answer what the code asks for). Returns not 0 to leave, as
	 * on_event does. NULL: nothing else is looked at. */
	int (*on_wake)(void *arg);
	int wake_fd; /* borrowed */
};
/* Executes code and waits for its end, however that comes. ret: the result as a JSON object
 * (outcome, how, state, status, wall_ms, ..., and `events` if on_event is NULL), to be freed; NULL
 * after on_event or on_wake has left. PALE_E_NOTFOUND: the box ended meanwhile. */
PALE_EXPORT int pale_session_exec(struct pale_session *s, const char *code, size_t len,
				  const struct pale_exec_options *options, char **ret,
				  struct pale_err *err);
/* The same of one that was begun before (0: the newest), from its event `from` on. */
PALE_EXPORT int pale_session_follow(struct pale_session *s, uint32_t execution, uint64_t from,
				    const struct pale_exec_options *options, char **ret,
				    struct pale_err *err);
/* Any command of the control protocol: arguments and *ret are JSON objects; arguments may be NULL.
 * wait_ms: what its own `wait_ms` says. */
PALE_EXPORT int pale_session_call(struct pale_session *s, const char *command,
				  const char *arguments, uint64_t wait_ms, char **ret,
				  struct pale_err *err);
/* The sessions that run: calls fn with the answer to `info` of each (JSON), newest last; not with
 * what a pool holds ready, which is nobody's yet (pale_pool_list()). Where a box did not answer,
 * that is the error, and all others are listed. */
PALE_EXPORT int pale_session_list(void (*fn)(void *arg, const char *json), void *arg,
				  struct pale_err *err);

/* A pool: a process that holds sessions of one policy ready, so that pale_session_new() with that
 * very policy takes one of them, in less than a millisecond. Each is used once. Its policy names no
 * files of the host, no secrets and no published ports: they would be those of an earlier time. */
struct pale_pool_options {
	size_t size;	/* sizeof(struct pale_pool_options) */
	unsigned boxes; /* that are held ready, 1 to 256 */
	const char *cwd;
	char *const *env;
	const struct pale_policy *base_policy;
};
/* Starts one and waits until it is ready; it then runs until it is stopped. PALE_E_CONFLICT: there
 * is one of this policy. */
PALE_EXPORT int pale_pool_start(const struct pale_policy *policy,
				const struct pale_pool_options *options, struct pale_err *err);
/* Calls fn with {key, policy, size, ready, warm, building, claimed, pid} of each. */
PALE_EXPORT int pale_pool_list(void (*fn)(void *arg, const char *json), void *arg,
			       struct pale_err *err);
/* Stops those whose key begins so (NULL: all of them): how many. Sessions that were taken go on.
 * PALE_E_NOTFOUND: none does. */
PALE_EXPORT int pale_pool_stop(const char *key, struct pale_err *err);

/* --- the audit log ----------------------------------------------------------------------- */

/* The logs of all runs, in the state directory ($PALE_STATE_DIR, /var/lib/pale for root, or
 * ~/.local/state/pale). What is read from them may have come from a box: texts are hostile unless
 * it is said that they are safe for a terminal. */

/* Finds the runs whose supervisors were lost (killed, a power cut), ends what is left of them, and
 * closes their logs. Each run does so at its start. The number of them. */
PALE_EXPORT int pale_audit_recover(struct pale_err *err);
/* The id that ref means: an id, a unique beginning of one, "last", "@1" (the one before the last),
 * the name of a session (one that has ended: the last of that name). */
PALE_EXPORT int pale_audit_find(const char *ref, char ret[PALE_ID_SIZE], struct pale_err *err);

/* One run, in short. Texts are NULL where the log does not say. */
struct pale_audit_run {
	const char *id, *started, *ended; /* times as in the log: UTC, ISO 8601 */
	const char *outcome;		  /* as pale_result_outcome(), "running", "lost" */
	const char *command, *policy, *user;
	const char *damaged;	 /* why its log cannot be trusted */
	int64_t status, wall_ms; /* -1: unknown */
	uint64_t blocked, limits, errors, lines, bytes;
	bool unapplied; /* changes are kept that nobody applied or discarded */
	bool live, lost;
	const char *session; /* the name of a session; NULL: it has none, or is no session */
};
struct pale_audit_filter {
	size_t size;	     /* sizeof(struct pale_audit_filter) */
	const char *since;   /* "1h", "30d", "2026-01-31"; NULL: all */
	const char *outcome; /* NULL: any */
	const char *event;   /* runs with at least one of these ("network.blocked"); NULL: any */
	size_t limit;	     /* 0: no limit */
};
/* Calls fn with each run, the newest first, until it returns other than 0, which is then returned.
 * filter may be NULL. PALE_E_USAGE: the filter makes no sense. */
PALE_EXPORT int pale_audit_list(const struct pale_audit_filter *filter,
				int (*fn)(void *arg, const struct pale_audit_run *run), void *arg,
				struct pale_err *err);
/* The ids of all runs that started since then (NULL: all), the oldest first. */
PALE_EXPORT int pale_audit_ids(const char *since, int (*fn)(void *arg, const char *id), void *arg,
			       struct pale_err *err);

/* One run as people read it, safe for a terminal. width in columns, 0: no limit. Without
 * PALE_SHOW_* flags a page; the number of events shown. */
#define PALE_SHOW_EVENTS 16u /* every event, one a line */
#define PALE_SHOW_BLOCKED \
	32u /* what was blocked and limits only: a table, or with EVENTS each event */
#define PALE_SHOW_JSON 64u /* the events as JSON lines */
PALE_EXPORT int pale_audit_show(const char *id, FILE *out, unsigned flags, size_t width,
				struct pale_err *err);
struct pale_audit_tail {
	size_t size;	/* sizeof(struct pale_audit_tail) */
	const char *id; /* of the run; NULL: every live run, and those that start meanwhile */
	bool on;	/* what follows too, until the run's end */
	uint64_t last;	/* so many events of what is in the log already are told; UINT64_MAX: all */
};
/* The last events of a run, and what follows. fn is called with the event as a line of JSON; with
 * NULL for json if that run's log is damaged; with NULL for both whenever that is all for now. It
 * returns other than 0 to stop. how NULL: every live run, and nothing of what was before. */
PALE_EXPORT int pale_audit_tail(const struct pale_audit_tail *how,
				int (*fn)(void *arg, const char *id, const char *json), void *arg,
				struct pale_err *err);
/* The same with the last ten events of each run. */
PALE_EXPORT int pale_audit_follow(const char *id, bool on,
				  int (*fn)(void *arg, const char *id, const char *json), void *arg,
				  struct pale_err *err);
/* One event as a line for people, safe for a terminal. */
PALE_EXPORT int pale_audit_print(const char *json, FILE *out, unsigned flags, size_t width,
				 struct pale_err *err);
/* The log as JSON lines as they are, or as one line of OTLP/JSON. */
PALE_EXPORT int pale_audit_export(const char *id, bool otlp, FILE *out, struct pale_err *err);
/* A self-contained HTML page. */
PALE_EXPORT int pale_audit_report(const char *id, FILE *out, struct pale_err *err);

enum pale_audit_state {
	PALE_AUDIT_SEALED, /* ended, whole, and as its seal says */
	PALE_AUDIT_LIVE,   /* being written; the lines so far hold */
	PALE_AUDIT_LOST,   /* its supervisor was lost, and nobody closed it yet; the lines hold */
	PALE_AUDIT_BROKEN, /* altered */
};
struct pale_audit_verdict {
	enum pale_audit_state state;
	uint64_t lines;	    /* that hold */
	uint64_t head_line; /* whose hash was asked for, or 0 */
	uint64_t bad_line;  /* the first that does not hold, or 0 */
	char what[240];	    /* how it was altered; safe for a terminal */
	char head[65];	    /* the hash of the last line: keep it elsewhere to find a log that was
			       rewritten */
};
/* Checks a log's chain of hashes. head: the hash of a line noted before, or NULL. 0 also for an
 * altered one. */
PALE_EXPORT int pale_audit_verify(const char *id, const char *head, struct pale_audit_verdict *ret,
				  struct pale_err *err);

struct pale_audit_prune {
	size_t size;	    /* sizeof(struct pale_audit_prune) */
	uint64_t max_bytes; /* keep at most this much; 0: no limit */
	const char *older;  /* remove what is older: "30d"; NULL: nothing for its age */
	bool dry_run;
	bool force; /* also runs with changes that nobody applied or discarded */
	void (*each)(void *arg, const char *id,
		     uint64_t bytes); /* told of each that goes; or NULL */
	void *arg;
};
struct pale_audit_pruned {
	uint64_t runs, bytes, kept_runs, kept_bytes;
	uint64_t unapplied, live; /* that would have gone but for this */
	char path[4096];	  /* the state directory */
};
/* Removes whole runs, the oldest first; never a live one. how NULL: what is beyond 1 GiB. */
PALE_EXPORT int pale_audit_prune(const struct pale_audit_prune *how, struct pale_audit_pruned *ret,
				 struct pale_err *err);
/* The same beyond 1 GiB, if that was not done within a day; costs one stat() else. For the end of a
 * program; what fails is left for the next time. */
PALE_EXPORT void pale_audit_prune_daily(void);
/* Makes the index of runs anew from their logs. */
PALE_EXPORT int pale_audit_reindex(struct pale_err *err);

enum pale_severity { PALE_INFO, PALE_BLOCKED, PALE_LIMIT, PALE_ERROR };
/* One kind of event. Strings are static. */
struct pale_audit_event {
	const char *name, *stage, *severity_name, *doc;
	enum pale_severity severity;
};
/* The kind at this index (from 0); false: there are no more. */
PALE_EXPORT bool pale_audit_event(size_t index, struct pale_audit_event *ret);
/* The documentation of the log in Markdown; to be freed by the caller. */
PALE_EXPORT int pale_audit_docs(char **ret, struct pale_err *err);

/* --- workspaces -------------------------------------------------------------------------- */

/* What runs changed in their overlays, kept beside their logs until it is applied or discarded.
 * Names and contents come from a box: what is printed is escaped, but for patches without
 * PALE_DIFF_ESCAPED, NUL-ended names and JSON, whose strings are as JSON has them. */

#define PALE_DIFF_PATCH	   256u		  /* as `git apply` takes it; else a summary */
#define PALE_DIFF_NAMES	   512u		  /* names only, one a line */
#define PALE_DIFF_NUL	   1024u	  /* with NAMES: as they are, each ended by a NUL */
#define PALE_DIFF_JSON	   PALE_SHOW_JSON /* one JSON object with all entries; for apply too */
#define PALE_DIFF_ESCAPED  2048u /* with PATCH: for a terminal; `git apply` may not take it */
#define PALE_APPLY_DRY_RUN 4096u /* says what would be done */
#define PALE_APPLY_ALL_HELD \
	8192u /* also what is held back: what the host would later execute or obey */
#define PALE_APPLY_FORCE 16384u /* also over files that changed on the host meanwhile */

struct pale_workspace_options {
	size_t size; /* sizeof(struct pale_workspace_options) */
	/* Only these and what is below: relative to the working directory if that is in the
	 * workspace, or else to the workspace; NULL: all. */
	const char *const *paths;
	size_t npaths;
	/* apply: also what is held back and fits one of these patterns. */
	const char *const *include;
	size_t ninclude;
	unsigned flags;
	void (*warn)(void *arg, const char *message); /* what a patch has to leave out; or NULL */
	void *arg;
};
/* Entries, by kind and by what became or would become of them. */
struct pale_workspace_totals {
	char run[PALE_ID_SIZE];
	uint64_t added, modified, mode, touched, deleted,
		special;  /* of a diff; special: never applied */
	uint64_t applied; /* or, in a dry run, applicable */
	uint64_t already; /* on the host */
	uint64_t held, conflicts, refused, failed;
	uint64_t unsaid;    /* what a patch cannot say: directories, times, special entries */
	uint64_t too_large; /* for a patch */
};
/* Prints what a run changed. run: an id, or NULL for the last. PALE_E_NOTFOUND: it has no changes
 * (any more); PALE_E_USAGE: nothing changed at one of the paths. */
PALE_EXPORT int pale_workspace_diff(const char *run, const struct pale_workspace_options *options,
				    FILE *out, struct pale_workspace_totals *ret,
				    struct pale_err *err);
/* Writes it to the host, each file by one rename, and prints what was done and what was not (see
 * ret). 0 also if some entries were held back or failed. PALE_E_AUDIT: it cannot be logged; nothing
 * was done. */
PALE_EXPORT int pale_workspace_apply(const char *run, const struct pale_workspace_options *options,
				     FILE *out, struct pale_workspace_totals *ret,
				     struct pale_err *err);
/* Throws it away. */
PALE_EXPORT int pale_workspace_discard(const char *run, struct pale_err *err);
/* Whether the run has changes that are kept; its id to ret. */
PALE_EXPORT int pale_workspace_find(const char *run, char ret[PALE_ID_SIZE], struct pale_err *err);

#ifdef __cplusplus
}
#endif
#endif
