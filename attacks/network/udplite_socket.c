/* Datagrams of another protocol. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "sockets", .gain = "a protocol that no rule on UDP covers", .source = "udplite(7)",
       .event = "call.denied", .with = "call=socket", .works = SOME_KERNELS, .needs = "UDP-Lite",
       .flags = QUIET)
{
	return socket(AF_INET, SOCK_DGRAM, 136);
}
