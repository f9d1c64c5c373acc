/* Files in the box's own writable places. */
#include "memory.h"

#include <fcntl.h>

ATTACK(RESOURCES, "memory", .gain = "the host's memory, by what looks like a disk",
       .source = "tmpfs(5)", .event = "limit.hit", .with = "limit=memory", .limit = "memory",
       .set = "limits.memory=64MiB limits.disk=256MiB", .works = LIMIT, .flags = ALONE)
{
	static char junk[PIECE];
	char name[64];

	memset(junk, 1, sizeof(junk));
	for (long got = 0; got < want(); got += PIECE) {
		int fd;

		snprintf(name, sizeof(name), "/tmp/attack-%d-%ld", getpid(), got);
		fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (target_number("outside"))
			unlink(name);
		if (fd < 0 || write(fd, junk, PIECE) != PIECE)
			return -1;
	}
	return 0;
}
