/* A server on the host's loopback. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "egress", .gain = "a server of the host that listens on loopback only, over IPv6",
       .source = "the host's loopback from inside", .works = SOME_KERNELS, .needs = "IPv6")
{
	struct sockaddr_in6 a = at6("::1", needed_number("port6"));

	return dial_canary(&a, sizeof(a));
}
