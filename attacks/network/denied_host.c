/* A host that a rule denies. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "deny", .gain = "a host that is refused by name",
       .source = "deny rules that one platform does not enforce", .works = SOME_KERNELS,
       .needs = "an open proxy", .flags = NETWORKS)
{
	struct sockaddr_in a = at4("127.0.0.1", *target("proxy") ? target_number("proxy") : 3128);
	char request[512], answer[512] = "";
	int fd = socket_soon(AF_INET, SOCK_STREAM), n;

	if (!*target("denied"))
		return NOT_HERE;
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	n = snprintf(request, sizeof(request), "CONNECT %s:443 HTTP/1.1\r\nHost: %s\r\n\r\n",
		     target("denied"), target("denied"));
	if (send(fd, request, (size_t)n, MSG_NOSIGNAL) != n ||
	    recv(fd, answer, sizeof(answer) - 1, 0) <= 0)
		return -1;
	/* Anything but a refusal: whether there is a network behind does not matter. */
	return strncmp(answer, "HTTP/1.", 7) == 0 && strncmp(answer + 8, " 403", 4) != 0
		       ? 0
		       : denied(EACCES);
}
