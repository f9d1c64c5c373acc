/* The memory of a process of the host's. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "processes", .gain = "keys in the memory of the caller's programs",
       .source = "proc_pid_mem(5)", .works = OUTSIDE)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/mem", target("pid"));
	return open(path, O_RDONLY | O_CLOEXEC);
}
