/* A datagram to a group. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts", .gain = "machines of the host's network, and a way to find them",
       .source = "mDNS, RFC 6762", .event = "network.blocked", .with = "address=224.0.0.251",
       .works = SOME_KERNELS, .needs = "a network", .flags = LONELY | QUIET)
{
	struct sockaddr_in a = at4("224.0.0.251", 5353);
	int fd = socket_soon(AF_INET, SOCK_DGRAM);

	return fd < 0 ? -1 : sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a));
}
