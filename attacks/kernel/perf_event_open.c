/* A performance counter on oneself. */
#include "attack.h"

#include <linux/perf_event.h>

ATTACK
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .exclude_kernel = 1};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}
