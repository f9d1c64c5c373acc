/* The file that is missing where one is protected, created first. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "hide", .gain = "settings that the host's programs obey", .source = "CVE-2026-25725",
       .event = "file.blocked", .with = "path=/verify/read/hidden/attack", .works = OUTSIDE,
       .flags = WRITES)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/hidden/attack", target("read"));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		unlink(path);
	return fd;
}
