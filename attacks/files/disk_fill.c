/* Files in all writable places together. */
#include "../attack.h"

#include <fcntl.h>

#define PIECE (1 << 20)

ATTACK(FILES, "disk", .gain = "the host's disk or memory", .source = "write(2)",
       .event = "limit.hit", .with = "limit=disk", .limit = "disk", .works = LIMIT, .flags = ALONE)
{
	static const char *const dirs[] = {"/tmp", "/dev/shm", "/var/tmp"};
	long max = target_number("max"), got = 0;

	for (int i = 0; i < 3 && got <= max + PIECE; i++) {
		char name[64];
		int fd;

		snprintf(name, sizeof(name), "%s/attack-%d", dirs[i], getpid());
		fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		unlink(name);
		for (off_t at = 0; fd >= 0 && at < max / 2 + PIECE; at += PIECE, got += PIECE)
			if (fallocate(fd, 0, at, PIECE) < 0)
				break;
	}
	usleep(1200000);
	printf("got %ld\n", got);
	return got > max ? 0 : denied(ENOSPC);
}
