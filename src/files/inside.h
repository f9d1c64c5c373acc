/* Files of a running box, for its owner: looked at, read and written by a worker inside
 * (inside_worker.h), asked over a socket. And of a session's: what an execution changes, by another
 * one, the keeper (keeper.h).
 *
 * In the supervisor, in its event loop; nothing here waits. There are two workers for the
 * owner, each started when it is first needed and ended when nobody has needed it for a while: one
 * that reads, and one that writes, which is in the box's control groups, so that what it writes
 * counts as the box's. The keeper stays from the first time that there is something to keep. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "confine/cgroup.h"
#include "files/inside_wire.h"
#include "isolation/isolation.h"

struct inside; /* opaque; one box */

struct inside_config {
	struct event_base *base; /* borrowed, like all that follows */
	const struct plan *plan;
	const struct box *box;
	const struct cgroup *cgroup; /* NULL: none */
	/* A request has ended: data are the answer's (a->length bytes), checked for their
	 * number only. err, if it is not NULL, says why there is no answer. */
	void (*done)(void *client, const struct inside_request *q, const struct inside_answer *a,
		     const char *data, const struct pale_err *err);
	/* The same from the keeper. */
	void (*kept)(void *arg, const struct inside_request *q, const struct inside_answer *a,
		     const char *data, const struct pale_err *err);
	/* A worker has become free; after done(), also where the client was forgotten. */
	void (*free)(void *arg);
	void *arg;
};

int inside_new(const struct inside_config *config, struct inside **ret,
	       struct pale_err *err) _must_check_;
/* Ends the workers, and waits for their end. */
void inside_free(struct inside *in);

/* Does the request change anything? */
static inline bool inside_writes(enum inside_op op)
{
	return op == INSIDE_WRITE || op == INSIDE_MKDIR || op == INSIDE_REMOVE || op == INSIDE_LINK;
}
/* The worker for it has something to do already: ask again after config.free(). */
bool inside_busy(const struct inside *in, enum inside_op op);
/* Are an answer's numbers such as the request can have? All else of it is for whoever reads it to
 * check. */
bool inside_sensible(const struct inside_request *q, const struct inside_answer *a);
/* Asks; done() comes, later. data: what is to be written (q->length bytes). Not while it is busy.
 * PALE_E_CONFLICT: not while the box is frozen. */
int inside_ask(struct inside *in, const struct inside_request *q, const void *data, void *client,
	       struct pale_err *err) _must_check_;
/* Is there a keeper? One that is asked for something is started; it stays until it has brought
 * something back, or failed, and what it knew is gone with it. */
bool inside_keeps(const struct inside *in);
/* Asks it; kept() comes, later. Not while it is asked: that ends it, and both requests fail. */
int inside_keep(struct inside *in, const struct inside_request *q,
		struct pale_err *err) _must_check_;
/* Nobody waits as this client any more; what was asked is done all the same. */
void inside_forget(struct inside *in, void *client);
/* The box is about to be frozen, or goes on: a worker in its group would stand with it, and is
 * ended; a keeper that brings back stands, and its time with it. */
void inside_frozen(struct inside *in, bool frozen);
