/* A new file where the host's files are shown read-only. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "sources", .gain = "files on the host", .source = "CVE-2026-25725",
       .event = "file.blocked", .with = "path=/verify/read/attack", .works = OUTSIDE,
       .flags = WRITES)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/attack", target("read"));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		unlink(path);
	return fd;
}
