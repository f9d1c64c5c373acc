/* Read-only taken off a mount: here, nothing changed on it. */
#include "attack.h"

ATTACK
{
	uint64_t attr[4] = {0};

	return syscall(SYS_mount_setattr, -100, "/", 0, attr, sizeof(attr));
}
