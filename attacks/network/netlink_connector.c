/* To be told of each process that starts, by netlink. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "sockets", .gain = "to be told of each process that starts", .source = "netlink(7)",
       .event = "call.denied", .with = "call=socket", .works = SOME_KERNELS,
       .needs = "the process connector", .flags = QUIET)
{
	return socket(AF_NETLINK, SOCK_RAW, 11);
}
