/* A process of the host's, traced. */
#include "../attack.h"

#include <sys/ptrace.h>

ATTACK(KERNEL, "processes", .gain = "everything that a program of the caller's can do",
       .source = "ptrace(2)", .event = "call.denied", .with = "call=ptrace", .works = OUTSIDE,
       .flags = QUIET)
{
	return ptrace(PTRACE_SEIZE, (pid_t)target_number("pid"), NULL, NULL);
}
