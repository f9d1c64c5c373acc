/* The x32 table: every call, by numbers that a filter may not know. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "every call, by numbers that a filter may not know",
       .source = "seccomp(2)", .works = SOME_KERNELS, .needs = "x32")
{
#ifdef __x86_64__
	return syscall(0x40000000 | SYS_getpid);
#else
	return NOT_HERE;
#endif
}
