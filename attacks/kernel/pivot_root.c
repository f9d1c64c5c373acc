/* Another root. */
#include "attack.h"

ATTACK
{
	return reached(syscall(SYS_pivot_root, "/", "/"), EBUSY);
}
