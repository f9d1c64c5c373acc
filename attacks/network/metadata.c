/* The cloud's own address. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts", .gain = "the credentials of the machine, from its cloud",
       .source = "requests to the metadata service (Capital One, 2019)", .event = "network.blocked",
       .with = "address=169.254.169.254", .works = SOME_KERNELS, .needs = "a network",
       .flags = LONELY | QUIET)
{
	struct sockaddr_in a = at4("169.254.169.254", 80);

	return attempt(&a, sizeof(a));
}
