/* What the files of a session share; for nobody else. */
#pragma once

#include "session/session.h"

#include "session/kernel.h"

enum cause { CAUSE_NONE, CAUSE_INTERRUPT, CAUSE_TIMEOUT, CAUSE_CPU, CAUSE_OUTPUT, CAUSE_MEMORY };

enum stage { STAGE_RUNS, STAGE_SIGNALLED, STAGE_KILLED };

struct waiter;

/* A timer of what runs. While the box is frozen it stands. */
struct clock {
	struct event *event;
	bool runs;
	uint64_t at_us;	  /* when it is over */
	uint64_t left_us; /* while it stands */
};

struct session {
	struct session_config config;
	struct kernel *kernel;
	bool ready, dead, frozen;
	char language[32], banner[128];
	TAILQ_HEAD(execution_list, execution) executions; /* oldest first */
	TAILQ_HEAD(, waiter) waiters;
	size_t nqueued;
	uint32_t last_id, last_request;
	struct execution *running;
	struct clock timeout, grace;
	struct event *notify, *idle, *lifetime;

	/* How the running one is being ended. */
	enum cause cause;
	enum stage stage;
	enum session_escalate escalate;
	bool escalated;	  /* it took the SIGKILL */
	unsigned signals; /* on their way: one that comes late would hit the next execution */
	uint64_t cpu_base_us;
	bool beginning; /* the running one waits until its files are kept */
	bool settling;	/* it has ended, and waits until its files were looked at */
	json_t *result; /* then */
	bool undoing;	/* variables are back, files not yet */
	uint32_t undone;

	/* The request under way: UNDO, RESTART, COMPLETE, INSPECT. */
	uint8_t request;
	uint32_t request_id;
	void *request_client;

	uint32_t undoable; /* the execution that can be undone, or 0 */
	uint32_t ended_id; /* the last one that ended its interpreter, until a fresh one is there */
	char note[200];	   /* for the next execution */
	char not_armed[SESSION_WHY]; /* why the last one could not be taken back */
	uint64_t made_us, used_us, cpu_seen_us;

	/* freeze.c */
	struct event *freezing; /* pending: not all of it stands yet */
	void *freeze_client;	/* who waits for that */
	uint64_t frozen_us;	/* since when */
};

void session_timer(struct event *e, uint64_t us);
/* Begins the next execution, if there is one and it can be. */
void session_start_next(struct session *s);
/* Those who wait are told, when all that has come together was taken. */
void session_notify(struct session *s);
/* id 0: the newest. */
struct execution *session_find(struct session *s, uint32_t id);
/* The one that runs, unless it is nobody's: the warm-up. */
static inline struct execution *session_current(const struct session *s)
{
	return s->running && s->running->id ? s->running : NULL;
}
/* Of its code the first line that says something, cut; borrowed. */
const char *session_first_line(const struct execution *x, size_t *ret_len);
/* Of one that has ended, the first line of the code is enough. */
void session_shorten(struct execution *x);
#define SESSION_CODE_LINE 200
/* A signal for a process of the box, and its group. */
void session_signal(struct session *s, int32_t pid, int number);
/* The box cannot go on. */
void session_fail(struct session *s, const struct pale_err *err);

/* ending.c */
#define SESSION_BACK_MS 5000 /* for the kernel to come back after a SIGKILL, or to answer */
extern const char *const session_cause_outcomes[]; /* by enum cause */
/* Asks what runs to end, and makes it. */
void session_end_running(struct session *s, enum cause cause, enum session_escalate escalate,
			 uint64_t grace_ms);
void session_on_grace(evutil_socket_t fd, short what, void *arg);
void session_on_timeout(evutil_socket_t fd, short what, void *arg);
void session_check_output(struct session *s);

/* clients.c */
void session_on_notify(evutil_socket_t fd, short what, void *arg);
/* It was interrupted, and goes on: whoever waits for its end because of that is told. */
void session_not_ended(struct session *s, uint32_t id);
/* Everybody is told what there is; everybody is forgotten. */
void session_answer_all(struct session *s);
void session_forget_all(struct session *s);
int session_check_alive(const struct session *s, struct pale_err *err) _must_check_;

/* freeze.c */
int session_freeze_init(struct session *s, struct pale_err *err) _must_check_;
void session_freeze_free(struct session *s);
/* The box is dead. */
void session_freeze_ended(struct session *s);
void session_freeze_forget(struct session *s, void *client);
void clock_start(struct session *s, struct clock *c, uint64_t us);
void clock_stop(struct clock *c);
