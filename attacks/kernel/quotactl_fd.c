/* The disk quotas of others. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "the disk quotas of others", .source = "quotactl_fd(2)",
       .event = "call.denied", .with = "call=quotactl_fd", .works = OUTSIDE)
{
	return reached(syscall(443, -1, 0x80000700u, 0, NULL), EBADF);
}
