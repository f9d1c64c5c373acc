/* The program that the kernel runs, as root, when another crashes. */
#include "attack.h"

#include <fcntl.h>

ATTACK
{
	int fd = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);

	return fd < 0 && access("/proc/sys/kernel/core_pattern", F_OK) < 0 &&
			       getenv("ATTACK_OUTSIDE")
		       ? NOT_HERE
		       : fd;
}
