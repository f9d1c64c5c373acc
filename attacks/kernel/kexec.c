/* Another kernel (none: it only lets go of what was loaded). */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "another kernel", .source = "kexec_load(2)", .event = "call.denied",
       .with = "call=kexec_load", .works = SOME_KERNELS, .needs = "kexec")
{
	return syscall(SYS_kexec_load, 0ul, 0ul, NULL, 0ul);
}
