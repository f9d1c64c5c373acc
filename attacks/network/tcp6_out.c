/* TCP to an IPv6 address. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts", .gain = "a server on the internet, where only IPv4 is looked after",
       .source = "ipv6(7)", .event = "network.blocked", .with = "address=2001:db8::77",
       .works = SOME_KERNELS, .needs = "IPv6", .flags = LONELY | QUIET)
{
	struct sockaddr_in6 a = at6("2001:db8::77", 443);

	return attempt(&a, sizeof(a));
}
