/* A new file where files are shown copy on write. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "sources", .gain = "files on the host, where only the copy was to change",
       .source = "overlayfs, kernel.org", .broken = "overlay-written", .works = OUTSIDE)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/new", target("overlay"));
	return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}
