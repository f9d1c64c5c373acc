/* The environment of the first process. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "processes",
       .gain = "the environment of the first process, which a careless tool fills with the "
	       "caller's",
       .source = "proc_pid_environ(5)", .works = OUTSIDE)
{
	char path[64];

	/* Outside, the test names a process of its own. */
	snprintf(path, sizeof(path), "/proc/%s/environ", target("first"));
	return open(path, O_RDONLY | O_CLOEXEC);
}
