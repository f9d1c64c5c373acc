/* A mark on packets, by which rules and routes may tell the broker's own from others. */
#include "../attack.h"

#include <sys/socket.h>

ATTACK(NETWORK, "egress", .gain = "packets that rules take for the broker's own",
       .source = "socket(7)", .works = AS_ROOT)
{
	int mark = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? -1 : setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark));
}
