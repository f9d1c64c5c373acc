/* A user namespace by clone(), with garbage in the upper half of the flags. */
#include "attack.h"

#include <sched.h>
#include <signal.h>

ATTACK
{
	long pid = syscall(SYS_clone, 0xffffffff00000000ul | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid;
}
