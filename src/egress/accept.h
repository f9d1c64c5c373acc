/* The transparent door: every TCP connection of the box that is not for itself. */
#pragma once

#include "egress/egress.h"

struct accept;

/* Listens on EGRESS_TCP4 and EGRESS_TCP6. */
int accept_new(struct egress *e, struct accept **ret) _must_check_;
void accept_free(struct accept *a);

/* Is this an address of the box itself (loopback, its own, or none at all)? */
bool accept_is_inside(int family, const void *address);
/* Sets host or address of a flow from an address that was connected to inside: a synthetic one
 * stands for its name. false: it stands for no name (any more). */
struct flow;
bool accept_name(struct flow *f, int family, const void *address);
