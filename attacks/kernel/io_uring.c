/* A ring: system calls that the filter would never see. */
#include "attack.h"

ATTACK
{
	char params[120] = {0};

	return syscall(SYS_io_uring_setup, 1, params);
}
