/* A restart of the machine, with a wrong password. */
#include "attack.h"

ATTACK
{
	return reached(syscall(SYS_reboot, 0, 0, 0, NULL), EINVAL);
}
