/* System calls turned into signals, under the filter's nose. */
#include "../attack.h"

#include <sys/prctl.h>

ATTACK(KERNEL, "calls", .gain = "system calls turned into signals, under the filter's nose",
       .source = "prctl(2)", .event = "call.denied", .with = "call=prctl", .works = OUTSIDE)
{
	return prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 0, 0, 0, 0);
}
