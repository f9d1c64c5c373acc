/* The state of one run, shared by the files of src/supervise. */
#pragma once

#include <event2/event.h>

#include "base/clock.h"
#include "confine/cgroup.h"
#include "isolation/isolation.h"
#include "session/session.h"
#include "supervise/door.h"
#include "supervise/egress.h"
#include "supervise/events.h"
#include "supervise/freeze.h"
#include "supervise/inbound.h"
#include "supervise/hints.h"
#include "supervise/live.h"
#include "supervise/notify.h"
#include "supervise/session_files.h"
#include "supervise/share.h"
#include "supervise/streams.h"
#include "supervise/supervise.h"
#include "supervise/terminal.h"
#include "supervise/usage.h"

#define MAX_EVENTS 16

struct run {
	const struct supervise_request *req;
	const struct plan *plan;
	struct result *result;
	struct audit *log;
	struct cgroup *cgroup;
	struct box box;
	struct streams *streams;
	struct events *events;
	struct notify *notify;
	struct broker *broker;	 /* where the plan has a network */
	struct inbound *inbound; /* where ports are published */
	struct live *live;	 /* likewise: its rules */
	struct door *door;
	struct inside *inside;	 /* with a door: what it reads and writes of the box's files by */
	struct session *session; /* where the command is a kernel */
	json_t *blocked_before;	 /* then: what was blocked before the execution that runs */
	struct session_files files;
	char name[65];		  /* and its name, if that is taken */
	bool held;		  /* in a pool, and nobody's yet */
	bool frozen;		  /* or is being */
	pid_t thaw_keeper;	  /* then: freeze.c; 0: none */
	int thaw_pipe;		  /* its end is our end */
	json_t *policy_name;	  /* for those at the door; with the next, as the log has them */
	char started[CLOCK_TEXT]; /* when the box was built */
	struct usage *usage;	  /* the supervisor's own accounting, where no cgroup counts */
	struct terminal terminal;
	struct hints_tail said; /* the end of standard error; of a session, the execution's */

	struct event_base *base;
	struct event *watched[MAX_EVENTS];
	size_t nwatched,
		nbox_watched; /* the first of them are the box's, the others the caller's */
	struct event *wall, *sample, *drain, *grace;

	uint64_t started_us; /* the gate opened */
	uint64_t processes_refused;
	struct share share;
	uint64_t next_look_us; /* at the limits */
	uint64_t oom_kills;    /* of the cgroup's count, those that were seen */
	unsigned interrupts;
	bool unwanted; /* the caller has asked for the end of it, or is gone */
	bool decided;  /* the outcome is known; what comes later does not change it */
	bool trimmed;
	bool main_ended;
	uint64_t init_cpu_us,
		init_max_rss_bytes; /* as init counted it; hostile, used where no cgroup counts */
	struct pale_err error;	    /* why Pale ended it (OUTCOME_FAILED) */
};

/* Ends the box for this reason, unless another came first. */
void run_end(struct run *run, enum outcome outcome);
/* Ends it because Pale itself cannot go on. */
void run_fail(struct run *run, const struct pale_err *err);
/* Notes a limit that was hit, in the result and the log, once; ended: and ends the box. */
void run_limit(struct run *run, enum limit limit, uint64_t used, uint64_t max, bool ended);
/* Watches a descriptor. */
int run_watch(struct run *run, int fd, short what, event_callback_fn fn,
	      struct pale_err *err) _must_check_;
void run_unwatch(struct run *run, int fd);
/* Ends the loop, whatever of the output was not passed on yet. */
void run_give_up_output(struct run *run);
/* Appends to the log; a failure ends the box. */
void run_log(struct run *run, const char *stage, const char *event, json_t *body);

/* limits.c */
int limits_start(struct run *run, struct pale_err *err) _must_check_;
/* Whether the kernel has killed something for want of memory, now: what was killed may be heard of
 * before why. */
void limits_memory(struct run *run);
/* How much the box may take more before its limit; what the kernel can drop is not counted. */
uint64_t limits_memory_left(struct run *run);
/* Which of LIMIT_DISK and LIMIT_INODES are at their end now: 1 << each. */
unsigned limits_full(struct run *run);
/* To look again in so many milliseconds, if that is not to happen before. */
void limits_soon(struct run *run, uint64_t ms);
/* The last figures, when the box is dead. */
void limits_finish(struct run *run);

/* caller.c: watches the caller's signals and commands. */
int caller_watch(struct run *run, struct pale_err *err) _must_check_;

/* door_run.c: opens the door of a run with a network, and closes it when the box is dead (what is
 * left of it goes with door_free()). */
int door_open(struct run *run, struct pale_err *err) _must_check_;
void door_close(struct run *run);

/* session_run.c: the session of a run, from when the kernel's end of the channel is made. */
int session_open(struct run *run, struct pale_err *err) _must_check_;
/* Waits for whoever takes it over. */
int session_watch_pool(struct run *run, struct pale_err *err) _must_check_;
/* Somebody does: arg is the run; name may be NULL. On failure the box ends. */
int session_claimed(void *arg, const char *name, const struct live_who *who,
		    struct pale_err *err) _must_check_;
/* What of a name is left when the run has ended. */
void session_close(struct run *run);

/* harvest.c: what the box left, when it is dead: collected directories and captured overlays. */
void harvest(struct run *run, int64_t started_ns);
