/* A socket among files that are shown. */
#include "../attack.h"

#include <sys/un.h>

#include "../network/dial.h"

ATTACK(FILES, "sources", .gain = "a host process that listens there",
       .source = "docker.sock in a workspace", .works = OUTSIDE)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket_soon(AF_UNIX, SOCK_STREAM);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/socket", target("read"));
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	return read_canary(fd);
}
