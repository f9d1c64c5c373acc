/* A server on the host's loopback, by datagrams. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "egress", .gain = "a server of the host: name servers, logs", .source = "udp(7)",
       .works = OUTSIDE)
{
	struct sockaddr_in a = at4("127.0.0.1", needed_number("udp"));
	int fd = socket_soon(AF_INET, SOCK_DGRAM);

	if (fd < 0 || sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	return read_canary(fd);
}
