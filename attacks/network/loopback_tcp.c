/* A server on the host's loopback. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "egress", .gain = "a server of the host that listens on loopback only",
       .source = "the host's loopback from inside", .works = OUTSIDE)
{
	struct sockaddr_in a = at4("127.0.0.1", needed_number("port"));

	return dial_canary(&a, sizeof(a));
}
