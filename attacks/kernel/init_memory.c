/* The memory of the first process. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "processes", .gain = "the first process, which speaks to the supervisor",
       .source = "proc_pid_mem(5)", .works = OUTSIDE)
{
	char path[64];

	/* Outside, the test names a process of its own. */
	snprintf(path, sizeof(path), "/proc/%s/mem", target("first"));
	return open(path, O_RDONLY | O_CLOEXEC);
}
