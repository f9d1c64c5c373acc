/* A limit of its own, raised. */
#include "../attack.h"

#include <sys/resource.h>

ATTACK(KERNEL, "privileges", .gain = "more than the policy allows", .source = "setrlimit(2)",
       .works = SOME_KERNELS, .needs = "CAP_SYS_RESOURCE")
{
	struct rlimit l;

	if (getrlimit(RLIMIT_MSGQUEUE, &l) < 0)
		return -1;
	l.rlim_cur = ++l.rlim_max;
	return setrlimit(RLIMIT_MSGQUEUE, &l);
}
