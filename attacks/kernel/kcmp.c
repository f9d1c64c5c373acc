/* Which kernel objects two processes share: addresses leak through the order. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "the order of kernel addresses", .source = "kcmp(2)",
       .event = "call.denied", .with = "call=kcmp", .works = OUTSIDE)
{
	return syscall(SYS_kcmp, getpid(), getppid(), 1 /* KCMP_VM */, 0, 0);
}
