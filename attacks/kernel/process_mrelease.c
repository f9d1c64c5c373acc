/* The memory of a process that is dying. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "the memory of a process that is dying",
       .source = "process_mrelease(2)", .event = "call.denied", .with = "call=process_mrelease",
       .works = OUTSIDE)
{
	return reached(syscall(448, -1, 0), EBADF);
}
