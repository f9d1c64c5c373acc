/* A performance counter on oneself. */
#include "../attack.h"

#include <linux/perf_event.h>

ATTACK(KERNEL, "calls", .gain = "counters that tell what others do", .source = "CVE-2013-2094",
       .event = "call.denied", .with = "call=perf_event_open", .works = OUTSIDE)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .exclude_kernel = 1};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}
