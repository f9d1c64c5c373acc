/* A user namespace by clone(), with garbage in the upper half of the flags. */
#include "../attack.h"

#include <sched.h>
#include <signal.h>

ATTACK(KERNEL, "calls",
       .gain = "all capabilities in a namespace of its own, by flags with garbage in the upper "
	       "half",
       .source = "CVE-2019-10063", .event = "call.denied", .with = "call=clone", .works = OUTSIDE,
       .flags = NESTING)
{
	long pid = syscall(SYS_clone, 0xffffffff00000000ul | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid;
}
