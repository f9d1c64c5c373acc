/* Pings. */
#include "../attack.h"

#include <fcntl.h>

#include "dial.h"

ATTACK(NETWORK, "sockets", .gain = "data out in pings", .source = "icmp(7)", .event = "call.denied",
       .with = "call=socket", .works = SOME_KERNELS, .needs = "net.ipv4.ping_group_range",
       .flags = QUIET)
{
	return socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}
