/* The limits of the first process. */
#include "../attack.h"

#include <sys/resource.h>

ATTACK(KERNEL, "processes", .gain = "a first process that cannot do its work",
       .source = "prlimit(2)", .event = "call.denied", .with = "call=prlimit64", .works = OUTSIDE,
       .flags = QUIET)
{
	struct rlimit l;
	pid_t pid = (pid_t)target_number("first");

	return syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, NULL, &l) < 0
		       ? -1
		       : syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &l, NULL);
}
