/* A datagram to all neighbours. */
#include "../attack.h"

#include <fcntl.h>

#include "dial.h"

ATTACK(NETWORK, "attempts", .gain = "every machine of the host's network", .source = "ip(7)",
       .event = "network.blocked", .with = "address=255.255.255.255", .works = SOME_KERNELS,
       .needs = "a network", .flags = LONELY | QUIET)
{
	struct sockaddr_in a = at4("255.255.255.255", 9999);
	int one = 1, fd = socket_soon(AF_INET, SOCK_DGRAM);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one)) < 0)
		return -1;
	return sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a));
}
