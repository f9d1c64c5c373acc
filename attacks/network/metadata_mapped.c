/* The same address as IPv6. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts",
       .gain = "the credentials of the machine, by a notation that a check does not know",
       .source = "server-side request forgery (CWE-918)", .event = "network.blocked",
       .with = "address=*", .works = SOME_KERNELS, .needs = "a network", .flags = LONELY | QUIET)
{
	struct sockaddr_in6 a = at6("::ffff:169.254.169.254", 80);

	return attempt(&a, sizeof(a));
}
