/* A session: a kernel in a box, its executions one after the other, how they are interrupted and
 * taken back, and who waits for what. docs/sessions.md tells it for users, docs/kernel-protocol.md
 * what the kernel is told.
 *
 * In the supervisor, which lends it what it needs of the box (struct session_ops). */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "session/execution.h"

struct session; /* opaque */

struct session_ops {
	/* Has the box's first process send a signal to a process (of the box's numbers) and, with
	 * group, to the process group that it leads. */
	int (*signal)(void *arg, int32_t pid, int signal_number, bool group);
	/* Puts an event on record; body is stolen. Negative: it could not, and the box ends. */
	int (*log)(void *arg, const char *event, json_t *body);
	/* The box cannot go on. */
	void (*fail)(void *arg, const struct pale_err *err);
	/* Takes what is in the box's streams: session_print() is called. */
	void (*drain)(void *arg);
	/* What the execution says of its error, which is not printed by it. */
	void (*said)(void *arg, const char *data, size_t len);
	/* Processor time that the box has used. */
	uint64_t (*cpu_us)(void *arg);
	/* Looks whether the kernel has killed something for want of memory: session_memory(). */
	void (*look_at_memory)(void *arg);
	/* Stops all of the box, or lets it go on. 0: done; 1: not all of it stands yet, but
	 * stands() will say so. */
	int (*freeze)(void *arg, bool freeze, struct pale_err *err);
	bool (*stands)(void *arg);
	/* An execution begins; rollback: its files are to be kept. 0, with whether they are, and
	 * else why not (ret_why: SESSION_WHY bytes); or SESSION_LATER: session_begun() comes. */
	int (*begin)(void *arg, bool rollback, bool *ret_kept, char *ret_why);
	/* It has ended: adds to its result what was attempted, what stood in its way, and which
	 * files it changed. back:
	 * and brings these back. 0, or SESSION_LATER: session_settled() comes, with the latter. */
	int (*settle)(void *arg, bool back, json_t *result);
	/* Brings back the files of the last one. 0, with what is to be told of it; or
	 * SESSION_LATER: session_put_back() comes. */
	int (*put_back)(void *arg, json_t **ret);
	/* The answer to a client who waits; result is stolen, or NULL and err. */
	void (*answer)(void *client, json_t *result, const struct pale_err *err);
	/* The kernel is ready, for the first time. */
	void (*ready)(void *arg);
	/* session_warm_up() is done. */
	void (*warm)(void *arg);
	/* Nobody has used it for idle_ms, or its lifetime is over. */
	void (*over)(void *arg, const char *why);
};

struct session_config {
	struct event_base *base; /* borrowed, as are the texts */
	int fd;			 /* the kernel channel, taken over */
	const char *kernel, *name;
	uint64_t wall_ms, cpu_ms, output_bytes, output_total_bytes; /* of an execution */
	uint64_t grace_ms, idle_ms, lifetime_ms;		    /* 0: no limit */
	bool rollback;
	bool held;	     /* nobody's, until session_claim(): then its time begins */
	const char *warm_up; /* code that changes nothing */
	const struct session_ops *ops;
	void *arg;
};

int session_new(const struct session_config *config, struct session **ret,
		struct pale_err *err) _must_check_;
void session_free(struct session *s);
bool session_ready(const struct session *s);
bool session_busy(const struct session *s);

/* Runs code that changes nothing and is not on record, so that the first execution finds its way
 * warm: what a process writes to for the first time costs it. Nothing, if an execution was begun.
 */
void session_warm_up(struct session *s);
/* Somebody has taken it over. The name is borrowed. */
void session_claim(struct session *s, const char *name);

/* ---- from the box ---- */

/* Something was printed. */
void session_print(struct session *s, enum execution_stream stream, const char *data, size_t len);
/* A process of the box is about to write to a stream: what the kernel sent before comes before. */
void session_before_print(struct session *s);
/* How much processor time the box has used by now. */
void session_cpu(struct session *s, uint64_t cpu_us);
/* When a running execution can reach its processor time: 0 if none runs. */
uint64_t session_cpu_left_us(const struct session *s);
/* See struct session_ops. What comes when it is not waited for any more is passed over. */
void session_begun(struct session *s, bool kept, const char *why);
/* files: keys for the result; stolen. */
void session_settled(struct session *s, json_t *files);
void session_put_back(struct session *s, json_t *files);
/* Its memory was used up. killed: the kernel has ended a process of it; else one has to go. False:
 * nothing runs that could be ended, so the box has to. */
bool session_memory(struct session *s, bool killed) _must_check_;
/* A signal that ops->signal() was asked for has been sent. */
void session_signalled(struct session *s);
/* The box is dead: whoever waits is told. outcome: "memory", "destroyed", ... */
void session_ended(struct session *s, const char *outcome);

/* ---- from the door ----
 *
 * Each returns 0 with *ret, a negative code, or SESSION_LATER: ops->answer() comes. */

#define SESSION_LATER 1

struct session_exec {
	const char *code;
	size_t len;
	uint64_t timeout_ms; /* 0: the policy's */
	int rollback;	     /* 0, 1; -1: the policy's */
	uint64_t wait_ms;
};
int session_exec(struct session *s, const struct session_exec *x, void *client, json_t **ret,
		 struct pale_err *err) _must_check_;
/* id 0: the newest. */
int session_output(struct session *s, uint32_t id, uint64_t from, uint64_t wait_ms, void *client,
		   json_t **ret, struct pale_err *err) _must_check_;

enum session_escalate { ESCALATE_NONE, ESCALATE_ROLLBACK, ESCALATE_RESTART };
/* id 0: the running one. grace_ms: negative for the policy's. */
int session_interrupt(struct session *s, uint32_t id, int64_t grace_ms, enum session_escalate how,
		      uint64_t wait_ms, void *client, json_t **ret,
		      struct pale_err *err) _must_check_;
int session_undo(struct session *s, void *client, json_t **ret, struct pale_err *err) _must_check_;
int session_restart(struct session *s, void *client, json_t **ret,
		    struct pale_err *err) _must_check_;
/* inspect: else complete. cursor: in code points. */
int session_ask(struct session *s, bool inspect, const char *code, size_t len, uint32_t cursor,
		void *client, json_t **ret, struct pale_err *err) _must_check_;
int session_input(struct session *s, uint32_t id, const char *text, size_t len, bool eof,
		  json_t **ret, struct pale_err *err) _must_check_;
/* freeze.c */
int session_freeze(struct session *s, bool freeze, void *client, json_t **ret,
		   struct pale_err *err) _must_check_;
bool session_frozen(const struct session *s);
/* all: with its history. */
json_t *session_show(struct session *s, bool all);
/* Somebody used it: its idle time begins anew. */
void session_touch(struct session *s);
/* Nobody waits as this client any more. */
void session_forget(struct session *s, void *client);
