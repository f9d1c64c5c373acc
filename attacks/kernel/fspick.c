/* A mounted file system, set otherwise. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "a mounted file system, set otherwise", .source = "fspick(2)",
       .event = "call.denied", .with = "call=fspick", .works = AS_ROOT, .flags = NESTING)
{
	return reached(syscall(SYS_fspick, -100, "/nowhere", 0), ENOENT);
}
