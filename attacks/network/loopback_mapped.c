/* The same by an IPv6 address that stands for an IPv4 one. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "egress", .gain = "a server of the host, by a notation that a check does not know",
       .source = "ipv6(7)", .works = SOME_KERNELS, .needs = "IPv6")
{
	struct sockaddr_in6 a = at6("::ffff:127.0.0.1", needed_number("port"));

	return dial_canary(&a, sizeof(a));
}
