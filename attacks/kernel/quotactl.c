/* Disk quotas. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "the disk quotas of others", .source = "quotactl(2)",
       .event = "call.denied", .with = "call=quotactl", .works = OUTSIDE)
{
	return syscall(SYS_quotactl, 0x80000100 /* Q_SYNC */, NULL, 0, NULL);
}
