/* A file that is shown copy on write, written. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "sources", .gain = "the host's file, where only the copy was to change",
       .source = "overlayfs, kernel.org", .broken = "overlay-written", .works = OUTSIDE)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/file", target("overlay"));
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	return fd < 0 ? -1 : write(fd, "x", 1);
}
