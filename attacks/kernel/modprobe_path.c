/* The program that the kernel runs, as root, to load modules. */
#include "attack.h"

#include <fcntl.h>

ATTACK
{
	int fd = open("/proc/sys/kernel/modprobe", O_WRONLY | O_CLOEXEC);

	return fd < 0 && access("/proc/sys/kernel/modprobe", F_OK) < 0 && getenv("ATTACK_OUTSIDE")
		       ? NOT_HERE
		       : fd;
}
