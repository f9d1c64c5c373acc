/* A call that the kernel will have one day. */
#include "attack.h"

ATTACK
{
	return syscall(510);
}
