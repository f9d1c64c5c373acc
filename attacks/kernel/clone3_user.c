/* A user namespace by clone3(), whose flags a filter cannot read. */
#include "../attack.h"

#include <linux/sched.h>
#include <signal.h>

ATTACK(KERNEL, "calls",
       .gain = "all capabilities over namespaces of its own, by flags that a filter cannot read",
       .source = "CVE-2022-0185", .event = "call.denied", .with = "call=clone3", .works = OUTSIDE,
       .flags = NESTING)
{
	struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	return pid;
}
