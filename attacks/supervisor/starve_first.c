/* Takes the processor away from the box's first process, in every way there is, then ends and
 * leaves hogs; with an argument it is one of them. */
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct {
		unsigned size, policy;
		unsigned long flags;
		int nice;
		unsigned priority;
		unsigned long runtime, deadline, period;
	} attr = {sizeof(attr), SCHED_IDLE, 0, 0, 0, 0, 0, 0};
	struct sched_param none = {0};
	cpu_set_t mine, one;

	sched_getaffinity(0, sizeof(mine), &mine);
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &mine))
			CPU_SET(i, &one);
	if (sched_setaffinity(1, sizeof(one), &one) == 0)
		puts("affinity");
	if (sched_setscheduler(1, SCHED_IDLE, &none) == 0)
		puts("policy");
	if (sched_setparam(1, &none) == 0)
		puts("parameter");
	if (syscall(SYS_sched_setattr, 1, &attr, 0) == 0)
		puts("attributes");
	if (setpriority(PRIO_PROCESS, 1, 19) == 0)
		puts("nice");
	if (setpriority(PRIO_PGRP, 1, 19) == 0)
		puts("nice of the group");
	if (setpriority(PRIO_USER, getuid(), 19) == 0 || setpriority(PRIO_USER, 0, 19) == 0)
		puts("nice of the user");
	if (syscall(SYS_ioprio_set, 1, 1, 3 << 13) == 0 ||
	    syscall(SYS_ioprio_set, 3, getuid(), 3 << 13) == 0)
		puts("i/o");
	/* One's own may be set as ever. */
	if (setpriority(PRIO_PROCESS, 0, 0) < 0 || sched_setaffinity(0, sizeof(one), &one) < 0)
		puts("own: refused");
	puts("tried");
	fflush(stdout);
	for (int i = 0; i < 110; i++)
		if (fork() == 0)
			for (;;)
				;
	for (; argc > 1 && argv[1];)
		;
	return 7;
}
