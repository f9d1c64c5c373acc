/* A server of the host at a Unix socket. */
#include "../attack.h"

#include <sys/un.h>

#include "dial.h"

ATTACK(NETWORK, "sockets", .gain = "a server of the host, with the rights of whoever runs it",
       .source = "unix(7)", .works = OUTSIDE)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", target("unix"));
	return dial_canary(&a, sizeof(a));
}
