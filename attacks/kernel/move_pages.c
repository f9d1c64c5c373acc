/* Where other processes' memory lies. */
#include "attack.h"

ATTACK
{
	return syscall(SYS_move_pages, getppid(), 0ul, NULL, NULL, NULL, 0);
}
