/* The limits of a process of the host's. */
#include "../attack.h"

#include <sys/resource.h>

ATTACK(KERNEL, "processes", .gain = "a program of the caller's that can open nothing any more",
       .source = "prlimit(2)", .works = OUTSIDE)
{
	struct rlimit l;

	return syscall(SYS_prlimit64, (pid_t)target_number("pid"), RLIMIT_NOFILE, NULL, &l);
}
