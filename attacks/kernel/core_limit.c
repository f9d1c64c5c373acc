/* Core dumps. */
#include "../attack.h"

#include <sys/resource.h>

ATTACK(KERNEL, "privileges", .gain = "the host's handler of core dumps, which runs as root",
       .source = "core(5); CVE-2025-5054", .works = AS_ROOT)
{
	struct rlimit l = {RLIM_INFINITY, RLIM_INFINITY};

	/* Asking for it may do nothing. */
	if (setrlimit(RLIMIT_CORE, &l) < 0 || getrlimit(RLIMIT_CORE, &l) < 0)
		return -1;
	return l.rlim_cur > 1 ? 0 : denied(EPERM);
}
