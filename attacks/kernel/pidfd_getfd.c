/* A descriptor of another process. */
#include "attack.h"

ATTACK
{
	int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);

	return pidfd < 0 ? -1 : reached(syscall(SYS_pidfd_getfd, pidfd, 0, 0), EBADF);
}
