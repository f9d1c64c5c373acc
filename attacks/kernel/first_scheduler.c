/* The scheduling of the first process. */
#include "../attack.h"

#include <sched.h>

#include <sched.h>

ATTACK(KERNEL, "processes", .gain = "a first process that never gets its turn",
       .source = "sched_setscheduler(2)", .event = "call.denied", .with = "call=sched_setscheduler",
       .works = OUTSIDE, .flags = QUIET)
{
	struct sched_param none = {0};

	return sched_setscheduler((pid_t)target_number("first"), SCHED_IDLE, &none);
}
