/* A mount from the new interface. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "a mount from the new interface", .source = "fsmount(2)",
       .event = "call.denied", .with = "call=fsmount", .works = AS_ROOT, .flags = NESTING)
{
	return reached(syscall(SYS_fsmount, -1, 0, 0), EBADF);
}
