/* What a log proves.
 *
 * The chain shows that the lines are in the order in which they were written and that none before
 * the last was changed, added or taken out. The seal (runs/<id>/head: the number of lines and the
 * hash of the last) shows the same of the last lines. Neither holds against somebody who may write
 * to the state directory and rewrites the whole log and the seal: for that, keep the hash elsewhere
 * and pass it. */
#pragma once

#include "audit/audit.h"

enum audit_state_of_log {
	AUDIT_LOG_SEALED, /* ended, whole, and as the seal says */
	AUDIT_LOG_LIVE,	  /* its supervisor is at work; the lines so far hold */
	AUDIT_LOG_LOST,	  /* its supervisor was lost and nobody closed it yet; the lines hold */
	AUDIT_LOG_BROKEN, /* altered; bad_line and what say where and how */
};

struct audit_verdict {
	enum audit_state_of_log state;
	uint64_t lines;	    /* that hold */
	uint64_t end_line;  /* of box.end; 0: none */
	uint64_t head_line; /* the line whose hash was asked for; 0: none asked for */
	uint64_t bad_line;  /* the first that does not hold; 0: none */
	char what[240];	    /* one sentence, safe for a terminal */
	char head[AUDIT_HASH_SIZE];
};

struct audit_seal {
	bool present;
	uint64_t lines;
	char head[AUDIT_HASH_SIZE];
};

/* Checks the bytes of a log: hostile. want_head may be NULL. live: whether it may be unfinished.
 * 0 if the log could be read, whatever it says; a negative code if not. */
int audit_verify_fd(const char *id, int fd, const struct audit_seal *seal, const char *want_head,
		    enum audit_state_of_log unfinished, struct audit_verdict *ret,
		    struct pale_err *err) _must_check_;

/* The same for a run in the state directory. */
int audit_verify(const char *id, const char *want_head, struct audit_verdict *ret,
		 struct pale_err *err) _must_check_;
