/* A descriptor of a process of the host's. */
#include "../attack.h"

ATTACK(KERNEL, "processes", .gain = "signals to it, also when its number is another's",
       .source = "pidfd_open(2)", .works = OUTSIDE)
{
	return syscall(SYS_pidfd_open, (pid_t)target_number("pid"), 0);
}
