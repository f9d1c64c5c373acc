/* Drivers and subsystems that speak generic netlink, by netlink. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "sockets", .gain = "drivers and subsystems that speak generic netlink",
       .source = "netlink(7)", .event = "call.denied", .with = "call=socket", .works = OUTSIDE,
       .flags = QUIET)
{
	return socket(AF_NETLINK, SOCK_RAW, 16);
}
