/* The same by the address 0.0.0.0, which is this host. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "egress",
       .gain = "a server of the host, by an address that no list of private ones has",
       .source = "0.0.0.0-day (2024)", .works = OUTSIDE)
{
	struct sockaddr_in a = at4("0.0.0.0", needed_number("port"));

	return dial_canary(&a, sizeof(a));
}
