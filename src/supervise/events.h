/* What a box attempts: into the audit log, and gathered for the result. */
#pragma once

#include <jansson.h>

#include "audit/audit.h"
#include "base/err.h"
#include "egress/wire.h"
#include "init/protocol.h"
#include "policy/network.h"
#include "supervise/notify.h"

struct events; /* opaque */

/* The log is borrowed. */
int events_new(struct audit *log, struct events **ret, struct pale_err *err) _must_check_;
void events_free(struct events *e);

/* n: the rules then in force; NULL: there are none. */
void events_notify(struct events *e, const struct policy_network *n,
		   const struct notify_event *event);
/* A name that was asked for; hostile, and already checked for its length. program may be empty. */
void events_lookup(struct events *e, const struct init_message *m, const char *program);
/* What the egress broker tells, every field checked. program may be empty. */
void events_egress(struct events *e, const struct policy_network *n, const struct egress_event *ev,
		   const char *program);
/* Writes the totals of what was not told singly. */
void events_flush(struct events *e);

/* The first failure to write the log: the box must end. 0 if there was none. */
int events_failed(const struct events *e, struct pale_err *err);
/* The list for the result: {kind, ..., count}. A new reference. */
json_t *events_blocked(const struct events *e);
/* What of the network was used: {connections, requests, bytes_out, bytes_in, used}. A new
 * reference.
 */
json_t *events_network(const struct events *e);
