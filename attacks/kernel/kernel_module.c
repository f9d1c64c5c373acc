/* A kernel module (an empty one). */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "code in the kernel", .source = "init_module(2)",
       .event = "call.denied", .with = "call=init_module", .works = SOME_KERNELS,
       .needs = "modules")
{
	return reached(syscall(SYS_init_module, "", 0ul, ""), ENOEXEC);
}
