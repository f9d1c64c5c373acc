/* The first process, traced. */
#include "../attack.h"

#include <sys/ptrace.h>

ATTACK(KERNEL, "processes", .gain = "what speaks to the supervisor", .source = "ptrace(2)",
       .event = "call.denied", .with = "call=ptrace", .works = OUTSIDE, .flags = QUIET)
{
	return ptrace(PTRACE_SEIZE, (pid_t)target_number("first"), NULL, NULL);
}
