/* A kernel module (an empty one). */
#include "attack.h"

ATTACK
{
	return reached(syscall(SYS_init_module, "", 0ul, ""), ENOEXEC);
}
