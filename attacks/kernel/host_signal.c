/* A signal to a process of the host's. */
#include "../attack.h"

#include <signal.h>

ATTACK(KERNEL, "processes", .gain = "the end of any program of the caller's", .source = "kill(2)",
       .works = OUTSIDE)
{
	return kill((pid_t)target_number("pid"), 0);
}
