/* Empty files, more than are allowed. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/stat.h>

ATTACK(FILES, "disk", .gain = "the host's inodes", .source = "inode(7)", .event = "limit.hit",
       .with = "limit=inodes", .limit = "inodes", .works = LIMIT, .flags = ALONE)
{
	long got = 0, max = target_number("max");
	char name[96];

	mkdir("/tmp/attack-inodes", 0700);
	for (; got <= max; got++) {
		int fd;

		snprintf(name, sizeof(name), "/tmp/attack-inodes/%ld", got);
		fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			break;
		close(fd);
	}
	usleep(1200000);
	printf("got %ld\n", got);
	for (long i = 0; i < got && target_number("outside"); i++) {
		snprintf(name, sizeof(name), "/tmp/attack-inodes/%ld", i);
		unlink(name);
	}
	rmdir("/tmp/attack-inodes");
	return got > max ? 0 : denied(ENOSPC);
}
