/* Another kernel (none: it only lets go of what was loaded). */
#include "attack.h"

ATTACK
{
	return syscall(SYS_kexec_load, 0ul, 0ul, NULL, 0ul);
}
