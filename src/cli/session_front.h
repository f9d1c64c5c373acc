/* An execution that a person or a script waits for: what it prints comes as it comes, Ctrl-C
 * interrupts it, and what it asks for is read. */
#pragma once

#include "base/buf.h"
#include "cli/session.h"
#include "cli/session_print.h"

struct session_front {
	const char *id;	  /* of the session's run */
	const char *name; /* as the caller called it, for messages */
	struct session_print *print;
	bool owner; /* Ctrl-C ends the execution; else it only leaves */
	bool input; /* stdin answers what the code asks for; else it is told that there is none */

	/* private */
	int epoll, signals, timer;
	uint32_t execution;
	json_int_t from; /* the first event that is wanted */
	bool started, armed;
	unsigned asked; /* how often it was told to end */
	int left;	/* the signal at which it left, or -1: nobody takes the output */
	bool wanted, hidden, stdin_ended;
	struct buf typed;
};

/* Watches signals from now on, which then do not end the process. */
int session_front_begin(struct session_front *f, struct pale_err *err) _must_check_;
void session_front_done(struct session_front *f);

/* Executes code, or follows an execution (0: the newest) from its event `from` on, to the end. The
 * exit status. */
int session_front_exec(struct session_front *f, struct pale_session *s, const char *code,
		       size_t len, uint64_t timeout_ms, int rollback);
int session_front_follow(struct session_front *f, struct pale_session *s, uint32_t execution,
			 uint64_t from);
