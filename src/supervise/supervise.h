/* One run: its box, its limits, its streams, its log, from start to result.
 *
 * Runs in the caller's process (`pale run`) or in pale-box; single-threaded, with the caller's
 * privileges. Whatever happens, when supervise_run() returns nothing of the box is left. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "plan/plan.h"
#include "supervise/result.h"

/* What the box prints, and each event as it is logged (borrowed). */
typedef void supervise_output(void *arg, enum output_stream stream, const char *data, size_t len);
typedef void supervise_event(void *arg, const json_t *event);
/* The id of the run, as soon as it has one. */
typedef void supervise_id(void *arg, const char *id);
/* Called once, while the box is being built. A new reference, or NULL and err. */
typedef json_t *supervise_start(void *arg, struct pale_err *err);

/* A session: the plan's command is a kernel, and the run lasts until somebody ends it. */
struct supervise_session {
	const char *name; /* or NULL; borrowed, like the request */
	/* The kernel is ready: from now on the run is on its own (control and caller_pidfd do not
	 * count any more). */
	void (*ready)(void *arg);
	/* Instead: it is held for whoever wants it, and this is told. A byte that comes over
	 * held_fd (borrowed; its other end's end is the box's) has it warmed up, and this is told
	 * once more. A descriptor is a client's connection: from then on the run is on its own. */
	void (*held)(void *arg, const char *id, bool warm);
	int held_fd;
};

struct supervise_request {
	const struct supervise_session *session; /* or NULL */
	struct plan *plan;			 /* borrowed; its promises are put into words */
	/* What becomes the command; or NULL. Taken over: it is freed as soon as the box has its
	 * own. */
	struct zygote *zygote;
	supervise_start *start; /* more keys for box.start (policy, digests, caller) */
	json_t *const *notes;	/* events to log after it: {event, stage, ...}; borrowed;
				   NULL-terminated or NULL */
	int in, out, err;	/* where the streams go; -1: nowhere (input ends at once) */
	int control;	     /* packets of the library's caller (struct supervise_command), or -1 */
	int caller_pidfd;    /* pale-box: when this process ends, the box is destroyed; 0: none */
	bool keep_output;    /* in the result */
	bool recovered;	     /* runs whose supervisors were lost are looked for often enough */
	bool own_process;    /* nothing but this run lives here: memory may be given back while it
				waits */
	bool handle_signals; /* SIGINT and the like are for the box; off in a library */
	bool interrupts_only; /* SIGINT is the command's, however many come; none ends the box */
	unsigned grace_ms;    /* after SIGTERM or SIGHUP; 0: 5000 */
	supervise_output *on_output; /* may be NULL */
	supervise_event *on_event;   /* may be NULL */
	supervise_id *on_id;	     /* may be NULL */
	void *arg;		     /* of these three */
	void *start_arg;
};

/* What the caller of the library may say to a running box. */
struct supervise_command {
	enum { SUPERVISE_SIGNAL = 1, SUPERVISE_DESTROY, SUPERVISE_RESIZE } kind;
	int value; /* signal */
	unsigned short rows, columns;
};

/* 0: *ret tells how it ended, also when Pale failed after the start (OUTCOME_FAILED, and err says
 * why). Negative: nothing ran. result_done() in either case. */
int supervise_run(const struct supervise_request *req, struct result *ret,
		  struct pale_err *err) _must_check_;

/* Ends and closes the runs whose supervisors were lost. */
int supervise_recover(struct pale_err *err) _must_check_;
