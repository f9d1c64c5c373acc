/* A call that the kernel will have one day. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "a call that no filter of today has been told of",
       .source = "the kernel's table of calls grows", .event = "call.denied", .with = "call=510",
       .works = SOME_KERNELS, .needs = "a call 510")
{
	return syscall(510);
}
