/* Which kernel objects two processes share: addresses leak through the order. */
#include "attack.h"

ATTACK
{
	return syscall(SYS_kcmp, getpid(), getppid(), 1 /* KCMP_VM */, 0, 0);
}
