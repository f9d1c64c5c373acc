/* The same through /proc. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "hide", .gain = "what the policy hides, past a check of paths",
       .source = "proc_pid_root(5)", .works = OUTSIDE)
{
	char path[512];

	snprintf(path, sizeof(path), "/proc/self/root%s/hidden/secret", target("read"));
	return read_canary(open(path, O_RDONLY | O_CLOEXEC));
}
