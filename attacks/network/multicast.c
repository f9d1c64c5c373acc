/* A datagram to a group. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts", .gain = "machines of the host's network, and a way to find them",
       .source = "mDNS, RFC 6762", .event = "network.blocked", .with = "address=224.0.0.251",
       .works = SOME_KERNELS, .needs = "a network", .flags = LONELY | QUIET)
{
	return attempt_datagram("224.0.0.251", 5353);
}
