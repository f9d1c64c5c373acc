/* Code in the kernel, from a file. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "code in the kernel, from a file", .source = "finit_module(2)",
       .event = "call.denied", .with = "call=finit_module", .works = SOME_KERNELS,
       .needs = "modules")
{
	return reached(syscall(SYS_finit_module, -1, "", 0), EBADF);
}
