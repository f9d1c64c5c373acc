/* A port of the machine's. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "devices, past their drivers", .source = "ioperm(2)",
       .event = "call.denied", .with = "call=ioperm", .works = SOME_KERNELS, .needs = "ports")
{
#ifdef SYS_ioperm
	return syscall(SYS_ioperm, 0x80, 1, 0);
#else
	return NOT_HERE;
#endif
}
