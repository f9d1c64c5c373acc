/* Disk quotas. */
#include "attack.h"

ATTACK
{
	return syscall(SYS_quotactl, 0x80000100 /* Q_SYNC */, NULL, 0, NULL);
}
