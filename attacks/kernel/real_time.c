/* Real-time scheduling. */
#include "../attack.h"

#include <sched.h>

#include <sched.h>

ATTACK(KERNEL, "privileges", .gain = "a processor that nobody else gets", .source = "sched(7)",
       .works = AS_ROOT)
{
	struct sched_param first = {.sched_priority = 1};

	return sched_setscheduler(0, SCHED_FIFO, &first);
}
