/* A copy of a mount that is nowhere to be seen. */
#include "attack.h"

ATTACK
{
	return syscall(SYS_open_tree, -100, "/", 1 /* OPEN_TREE_CLONE */);
}
