/* The same, without stopping it. */
#include "../attack.h"

#include <sys/ptrace.h>

/* Both are ends of one pipe, so that neither outlives the other. */
static pid_t victim(int *ret_end)
{
	int p[2];
	pid_t pid;
	char c;

	if (pipe(p) < 0 || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		close(p[1]);
		_exit((int)read(p[0], &c, 1));
	}
	close(p[0]);
	*ret_end = p[1];
	return pid;
}

ATTACK(KERNEL, "calls", .gain = "another process, led on a string without being stopped",
       .source = "ptrace(2)", .event = "call.denied", .with = "call=ptrace", .works = OUTSIDE)
{
	int end, error;
	pid_t pid = victim(&end);
	long r;

	if (pid < 0)
		return NOT_HERE;
	r = ptrace(PTRACE_SEIZE, pid, NULL, NULL);
	error = errno;
	close(end);
	errno = error;
	return r;
}
