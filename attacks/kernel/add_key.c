/* A key of one's own in the kernel. */
#include "attack.h"

ATTACK
{
	long key = syscall(SYS_add_key, "user", "pale-attack", "x", 1, -2 /* process keyring */);

	return key;
}
