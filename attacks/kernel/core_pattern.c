/* The program that the kernel runs, as root, when another crashes. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "privileges",
       .gain = "a program of its own run by the kernel, as root, when another crashes",
       .source = "core(5)", .works = AS_ROOT)
{
	int fd = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);

	return fd < 0 && access("/proc/sys/kernel/core_pattern", F_OK) < 0 ? NOT_HERE : fd;
}
