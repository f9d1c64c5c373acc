/* The processors of a process of the host's. */
#include "../attack.h"

#include <sched.h>

#include <sched.h>

ATTACK(KERNEL, "processes", .gain = "a program of the caller's on one processor, behind others",
       .source = "sched_setaffinity(2)", .works = OUTSIDE)
{
	cpu_set_t all;
	pid_t pid = (pid_t)target_number("pid");

	CPU_ZERO(&all);
	return sched_getaffinity(pid, sizeof(all), &all) < 0
		       ? -1
		       : sched_setaffinity(pid, sizeof(all), &all);
}
