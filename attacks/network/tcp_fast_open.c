/* A connection that opens with data and without connect(2). */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts", .gain = "a connection that no check of connect(2) sees",
       .source = "tcp(7)", .event = "network.blocked", .with = "address=192.0.2.81",
       .works = SOME_KERNELS, .needs = "a network", .flags = LONELY | QUIET)
{
	struct sockaddr_in a = at4("192.0.2.81", 443);
	int fd = socket_soon(AF_INET, SOCK_STREAM | SOCK_NONBLOCK);

	return fd < 0 ? -1
		      : let_out(sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL,
				       (struct sockaddr *)&a, sizeof(a)));
}
