/* The door for programs that use a proxy: HTTP CONNECT, HTTP in absolute form, and SOCKS 4, 4a and
 * 5, all on one port of the box's loopback. */
#pragma once

#include "egress/egress.h"

struct proxy;

/* Listens on EGRESS_PROXY. */
int proxy_new(struct egress *e, struct proxy **ret) _must_check_;
void proxy_free(struct proxy *p);
