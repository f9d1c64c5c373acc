/* A process of the host's, by its command line. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "processes", .gain = "passwords on command lines, and what runs",
       .source = "proc_pid_cmdline(5)", .works = OUTSIDE)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/cmdline", target("pid"));
	return read_canary(open(path, O_RDONLY | O_CLOEXEC));
}
