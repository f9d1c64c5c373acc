/* The kernel's IPsec, a rich source of holes, by netlink. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "sockets", .gain = "the kernel's IPsec, a rich source of holes",
       .source = "CVE-2017-7184", .event = "call.denied", .with = "call=socket", .works = OUTSIDE,
       .flags = QUIET)
{
	return socket(AF_NETLINK, SOCK_RAW, 6);
}
