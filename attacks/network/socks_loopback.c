/* A server on the host's loopback, through the box's proxy, by SOCKS. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "names", .gain = "a server of the host's, by another protocol of the proxy",
       .source = "SOCKS, RFC 1928", .works = SOME_KERNELS, .needs = "an open proxy",
       .flags = NETWORKS)
{
	struct sockaddr_in a = at4("127.0.0.1", *target("proxy") ? target_number("proxy") : 3128);
	unsigned port = (unsigned)needed_number("port");
	unsigned char q[64];
	char answer[16];
	size_t n;
	int fd = socket_soon(AF_INET, SOCK_STREAM);

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    send(fd, "\x05\x01\x00", 3, MSG_NOSIGNAL) != 3 || recv(fd, answer, 2, MSG_WAITALL) != 2)
		return -1;
	n = 8;
	memcpy(q, "\x05\x01\x00\x01\x7f\x00\x00\x01", n);
	q[n++] = (unsigned char)(port >> 8);
	q[n++] = (unsigned char)port;
	if (send(fd, q, n, MSG_NOSIGNAL) != (ssize_t)n || recv(fd, answer, 10, MSG_WAITALL) != 10)
		return -1;
	return answer[1] == 0 ? read_canary(fd) : denied(EACCES);
}
