/* Page faults handled by the attacker: stops the kernel where a race needs it. */
#include "attack.h"

ATTACK
{
	return syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */);
}
