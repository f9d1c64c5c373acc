/* UDP to names (and single addresses) that a rule for udp covers.
 *
 * There is no TPROXY for it here: when a name is looked up, spare sockets are bound to its
 * synthetic address at the rule's ports. They are few (EGRESS_UDPS of each family a box), and a
 * socket that is bound stays so. */
#pragma once

#include "egress/egress.h"
#include "egress/synthetic.h"

struct udp;

int udp_new(struct egress *e, struct udp **ret) _must_check_;
void udp_free(struct udp *u);
/* A name was looked up that rules cover: opens its ports, once. */
void udp_open(struct egress *e, struct synthetic_name *n);
