/* The box's DNS server: every question of the box, to whatever server it was asked, comes here.
 *
 * Nothing is ever forwarded. A name that some rule names is answered with an address that stands
 * for it (synthetic.h) and is resolved in the outside only when something connects to it; all
 * others do not exist. So a lookup carries nothing out. (A connection to data.allowed.example does,
 * by the name it makes the broker resolve, where a rule says *.allowed.example.) */
#pragma once

#include "egress/dns_wire.h"
#include "egress/egress.h"

/* Takes the EGRESS_DNS_* sockets. */
int dns_new(struct egress *e, struct dns **ret) _must_check_;
void dns_free(struct dns *d);
/* The answer to one query; false: say nothing. */
bool dns_answer(struct egress *e, const uint8_t *query, size_t len, struct dns_answer *ret);
