/* How the broker locks itself in: it reads hostile bytes, so it has nothing to lose. */
#pragma once

#include "base/err.h"
#include "egress/config.h"

/* The sockets of the box lie at these descriptors, and stay there: only those for UDP can be bound,
 * and none of these can be closed, so that no other socket can take such a number. */
#define LOCK_SOCKETS_AT	  64
#define LOCK_UDP_FIRST	  (LOCK_SOCKETS_AT + EGRESS_UDP)
#define LOCK_SOCKETS_LAST (LOCK_SOCKETS_AT + EGRESS_NSOCKETS - 1)

/* First: who it is, privileges, limits, and Landlock. Nothing can be opened by path from here on.
 */
int lock_privileges(const struct config *c, struct pale_err *err) _must_check_;
/* Last: the filter on system calls. What is not listed in lock.c fails with EPERM. */
int lock_calls(struct pale_err *err) _must_check_;
