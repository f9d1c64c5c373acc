/* A security module taken out. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "a security module taken out", .source = "delete_module(2)",
       .event = "call.denied", .with = "call=delete_module", .works = SOME_KERNELS,
       .needs = "modules")
{
	return reached(syscall(SYS_delete_module, "pale_none", 0), ENOENT);
}
