/* Where the memory of the first process lies. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "processes", .gain = "a first step into it", .source = "proc_pid_maps(5)",
       .works = OUTSIDE)
{
	char path[64], byte;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/maps", target("first"));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -1 : read(fd, &byte, 1) - 1;
}
