/* Priority over others. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/resource.h>

ATTACK(KERNEL, "privileges", .gain = "the processors, before everybody else",
       .source = "setpriority(2)", .works = AS_ROOT)
{
	return setpriority(PRIO_PROCESS, 0, -5);
}
