/* A server of the host that listens under an abstract name. */
#include "../attack.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

ATTACK(NETWORK, "sockets", .gain = "a server of the host that listens under an abstract name",
       .source = "unix(7); containerd CVE-2020-15257", .works = OUTSIDE)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const char *name = target("abstract");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path + 1, name, strnlen(name, sizeof(a.sun_path) - 1));
	return fd < 0 ? -1
		      : connect(fd, (struct sockaddr *)&a,
				(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
					    strlen(name)));
}
