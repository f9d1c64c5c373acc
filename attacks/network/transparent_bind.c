/* A socket that may take any address as its own, and so connections that are meant for others. */
#include "../attack.h"

#include <netinet/in.h>
#include <sys/socket.h>

ATTACK(NETWORK, "egress", .gain = "connections that are meant for others", .source = "ip(7)",
       .works = AS_ROOT)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? -1 : setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &one, sizeof(one));
}
