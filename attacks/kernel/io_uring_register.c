/* What another ring may do. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "what another ring may do", .source = "io_uring_register(2)",
       .event = "call.denied", .with = "call=io_uring_register", .works = OUTSIDE)
{
	return reached(reached(syscall(427, -1, 0, NULL, 0), EBADF), EINVAL);
}
