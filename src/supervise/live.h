/* The rules of a running box, and how they are changed: checked, put on record, handed to the
 * broker, and in force when it says so. One change at a time. */
#pragma once

#include <event2/event.h>
#include <jansson.h>

#include "egress/wire.h"
#include "policy/network_change.h"

struct live;

/* Who asks for a change, for the log. */
struct live_who {
	uid_t uid;
	pid_t pid;
	char program[16]; /* as it calls itself; any byte */
};

/* What a change is done with; each returns 0 or a negative code. */
struct live_ops {
	/* Puts network.changed on record; body is stolen. On failure nothing is changed. */
	int (*log)(void *arg, json_t *body, struct pale_err *err);
	/* Sends EGRESS_RULES with a sealed memfd, borrowed. The broker's answer comes to
	 * live_acknowledged(). */
	int (*send)(void *arg, int memfd, struct pale_err *err);
	/* The broker has these rules: what the supervisor checks by itself is checked by them. The
	 * old ones go when this returns. */
	void (*in_force)(void *arg, const struct policy_network *network);
	/* It is not known which rules are in force: the box must end. */
	void (*lost)(void *arg, const struct pale_err *err);
};

/* intercepts: the box has what rules need that look into TLS. */
int live_new(struct event_base *base, const struct policy_network *network, bool intercepts,
	     const struct live_ops *ops, void *arg, struct live **ret,
	     struct pale_err *err) _must_check_;
void live_free(struct live *l);

/* The rules in force, until the next change. */
const struct policy_network *live_network(const struct live *l);

/* Told once, from the loop: result (stolen), or NULL and err. */
typedef void live_done(void *arg, json_t *result, const struct pale_err *err);
bool live_busy(const struct live *l);
/* Begins a change, if nothing else is being changed (live_busy()). revision: that of the rules that
 * it is meant for, or 0. 1: done() comes later; 0: there is nothing to change, and *ret is the
 * result; negative: nothing was changed. */
int live_change(struct live *l, const struct network_change *c, uint64_t revision,
		const struct live_who *who, live_done *done, void *arg, json_t **ret,
		struct pale_err *err) _must_check_;
/* Nobody waits for the change that is under way any more; it is made all the same. */
void live_forget(struct live *l, void *arg);
/* The broker has taken over the rules that it was last sent: they are in force, and what it tells
 * from now on names them. */
void live_taken(struct live *l);
/* And what they do not allow any more has been ended: whoever asked is told. */
void live_acknowledged(struct live *l);

/* Counts an event of the broker for the rule that it names: hostile. */
void live_count(struct live *l, const struct egress_event *event);
/* The rules in force with their numbers and counters. */
json_t *live_show(const struct live *l);
