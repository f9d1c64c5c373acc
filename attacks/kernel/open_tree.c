/* A copy of a mount that is nowhere to be seen. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "a copy of a mount that is nowhere to be seen",
       .source = "open_tree(2)", .event = "call.denied", .with = "call=open_tree", .works = AS_ROOT,
       .flags = NESTING)
{
	return syscall(SYS_open_tree, -100, "/", 1 /* OPEN_TREE_CLONE */);
}
