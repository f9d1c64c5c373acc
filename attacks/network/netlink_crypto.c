/* The kernel's cryptography, by netlink. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "sockets", .gain = "the kernel's cryptography", .source = "netlink(7)",
       .event = "call.denied", .with = "call=socket", .works = SOME_KERNELS,
       .needs = "the crypto interface", .flags = QUIET)
{
	return socket(AF_NETLINK, SOCK_RAW, 21);
}
