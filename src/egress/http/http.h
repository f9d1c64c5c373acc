/* The HTTP engine: carries the flows in which each request is checked. */
#pragma once

#include "egress/flow.h"

struct http;

/* Before the broker locks itself in: makes the box's CA and loads the trust store, if the rules
 * intercept anything, and sends EGRESS_CA. Without files from then on. */
int http_new(struct egress *e, struct http **ret, struct pale_err *err) _must_check_;
void http_free(struct http *h);

/* Takes the flow over: it is the engine's to end. Nothing of the client's bytes has been read (they
 * were peeked at).
 *
 *   f->door FLOW_FORWARD   a proxy's client: requests in absolute form, each to a host of its own
 *   f->protocol NETWORK_HTTP   HTTP in clear to f->host (or the literal f->address)
 *   f->protocol NETWORK_TLS    TLS to be opened; f->sni was seen and is f->host */
void http_take(struct flow *f);
/* After EGRESS_RULES, before flows_recheck(). -err: the new rules need what was not prepared (for
 * example, something intercepts now and there is no CA); the old rules then stay. */
int http_rules(struct egress *e, struct pale_err *err) _must_check_;
