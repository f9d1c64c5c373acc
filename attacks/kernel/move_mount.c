/* A mount moved over another. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "a mount moved over another", .source = "move_mount(2)",
       .event = "call.denied", .with = "call=move_mount", .works = AS_ROOT, .flags = NESTING)
{
	return reached(syscall(SYS_move_mount, -1, "", -1, "", 0x44), EBADF);
}
