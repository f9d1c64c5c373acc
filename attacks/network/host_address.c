/* A server at the host's own address. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "egress", .gain = "services of the host for its neighbours",
       .source = "the host by its other address", .event = "network.blocked", .with = "address=*",
       .works = SOME_KERNELS, .needs = "an address", .flags = QUIET)
{
	struct sockaddr_in a = at4(needed("address"), needed_number("address_port"));

	return dial_canary(&a, sizeof(a));
}
