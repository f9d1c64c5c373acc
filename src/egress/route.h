/* Where the host's kernel would send a packet: is an address one of the host's own? */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"

/* A netlink socket for the questions; opened before the broker locks itself in. A descriptor or a
 * negative errno. */
int route_open(void) _must_check_;
/* Does the host deliver packets for this address to itself, or to many (broadcast, multicast)? The
 * answer is the routing decision of this moment, so that it holds for addresses that came since the
 * start, and for whole ranges that a route makes local. Also true where the kernel can't be asked.
 */
bool route_is_own(int fd, int family, const void *address);
