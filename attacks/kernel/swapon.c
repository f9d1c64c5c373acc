/* A swap file of one's own. */
#include "attack.h"

ATTACK
{
	return reached(syscall(SYS_swapon, "/nowhere", 0), ENOENT);
}
