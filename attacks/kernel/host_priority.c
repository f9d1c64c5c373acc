/* The priority of a process of the host's. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/resource.h>

ATTACK(KERNEL, "processes", .gain = "a program of the caller's behind all others",
       .source = "setpriority(2)", .works = OUTSIDE)
{
	id_t pid = (id_t)target_number("pid");

	/* As it is: nothing changes where it works. */
	return setpriority(PRIO_PROCESS, pid, getpriority(PRIO_PROCESS, pid));
}
