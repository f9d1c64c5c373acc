/* The new mount interface, which has calls of its own. */
#include "attack.h"

ATTACK
{
	return syscall(SYS_fsopen, "tmpfs", 0);
}
