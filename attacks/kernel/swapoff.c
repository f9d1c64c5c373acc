/* The host without swap. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "the host without swap", .source = "swapoff(2)",
       .event = "call.denied", .with = "call=swapoff", .works = AS_ROOT)
{
	return reached(syscall(SYS_swapoff, "/nowhere"), ENOENT);
}
