/* The same through the root that /proc shows. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "any file of the caller's, past what a check of paths sees",
       .source = "proc_pid_root(5)", .works = OUTSIDE)
{
	char path[512];

	snprintf(path, sizeof(path), "/proc/self/root%s", target("secret"));
	return read_canary(open(path, O_RDONLY | O_CLOEXEC));
}
