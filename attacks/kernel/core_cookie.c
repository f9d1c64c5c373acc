/* Another core scheduling cookie, beside whom others may run on the same core. */
#include "../attack.h"

#include <sys/prctl.h>

ATTACK(KERNEL, "core_scheduling", .gain = "a core of the processor, shared with whom it chooses",
       .source = "Documentation/admin-guide/hw-vuln/core-scheduling.rst", .event = "call.denied",
       .with = "call=prctl", .works = SOME_KERNELS,
       .needs = "core scheduling, and cores with threads")
{
	return prctl(62 /* PR_SCHED_CORE */, 1 /* CREATE */, 0, 0, 0);
}
