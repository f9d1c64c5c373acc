/* The environment of any other process. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "processes", .gain = "keys and tokens in variables", .source = "proc_pid_environ(5)",
       .works = OUTSIDE)
{
	for (int pid = 1; pid < 65536; pid++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/environ", pid);
		if (read_canary(open(path, O_RDONLY | O_CLOEXEC)) == 0)
			return 0;
	}
	return denied(ESRCH);
}
