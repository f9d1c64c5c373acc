/* The same address in octal. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts",
       .gain = "the credentials of the machine, by a notation that a check does not know",
       .source = "server-side request forgery (CWE-918)", .event = "network.blocked",
       .with = "address=169.254.169.254", .works = SOME_KERNELS, .needs = "a network",
       .flags = LONELY | QUIET)
{
	struct sockaddr_in a = at4("0251.0376.0251.0376", 80);

	return attempt(&a, sizeof(a));
}
