/* The emergency keys: a crash with one letter. */
#include "attack.h"

#include <fcntl.h>

ATTACK
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);

	return fd < 0 && access("/proc/sysrq-trigger", F_OK) < 0 && getenv("ATTACK_OUTSIDE")
		       ? NOT_HERE
		       : fd;
}
