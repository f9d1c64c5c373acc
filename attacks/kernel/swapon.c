/* A swap file of one's own. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "swap of its own", .source = "swapon(2)", .event = "call.denied",
       .with = "call=swapon", .works = AS_ROOT)
{
	return reached(syscall(SYS_swapon, "/nowhere", 0), ENOENT);
}
