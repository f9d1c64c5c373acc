/* To be told of the host's devices, by netlink. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "sockets", .gain = "to be told of the host's devices", .source = "netlink(7)",
       .event = "call.denied", .with = "call=socket", .works = OUTSIDE, .flags = QUIET)
{
	return socket(AF_NETLINK, SOCK_RAW, 15);
}
