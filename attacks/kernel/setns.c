/* Another namespace, through /proc. */
#include "attack.h"

#include <fcntl.h>
#include <sched.h>

ATTACK
{
	int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : setns(fd, 0);
}
