/* Another port of a host that a rule allows. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "allow", .gain = "other services of a host of which one is allowed",
       .source = "rules that name hosts only", .works = SOME_KERNELS, .needs = "an open proxy",
       .flags = NETWORKS)
{
	struct sockaddr_in a = at4("127.0.0.1", *target("proxy") ? target_number("proxy") : 3128);
	char request[512], answer[512] = "";
	int fd = socket_soon(AF_INET, SOCK_STREAM), n;

	if (!*target("allowed"))
		return NOT_HERE;
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	n = snprintf(request, sizeof(request), "CONNECT %s:1 HTTP/1.1\r\nHost: %s\r\n\r\n",
		     target("allowed"), target("allowed"));
	if (send(fd, request, (size_t)n, MSG_NOSIGNAL) != n ||
	    recv(fd, answer, sizeof(answer) - 1, 0) <= 0)
		return -1;
	/* Anything but a refusal: whether there is a network behind does not matter. */
	return strncmp(answer, "HTTP/1.", 7) == 0 && strncmp(answer + 8, " 403", 4) != 0
		       ? 0
		       : denied(EACCES);
}
