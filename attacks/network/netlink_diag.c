/* The host's sockets, by netlink. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "sockets", .gain = "the host's sockets", .source = "sock_diag(7)",
       .event = "call.denied", .with = "call=socket", .works = OUTSIDE, .flags = QUIET)
{
	return socket(AF_NETLINK, SOCK_RAW, 4);
}
