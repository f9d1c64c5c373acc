/* A descriptor of another process. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "a descriptor of another process", .source = "pidfd_getfd(2)",
       .event = "call.denied", .with = "call=pidfd_getfd", .works = OUTSIDE)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);

	return pidfd < 0 ? -1 : reached(syscall(SYS_pidfd_getfd, pidfd, 0, 0), EBADF);
}
