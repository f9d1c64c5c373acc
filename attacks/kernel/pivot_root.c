/* Another root. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "another root", .source = "pivot_root(2)", .event = "call.denied",
       .with = "call=pivot_root", .works = AS_ROOT, .flags = NESTING)
{
	return reached(syscall(SYS_pivot_root, "/", "/"), EBUSY);
}
