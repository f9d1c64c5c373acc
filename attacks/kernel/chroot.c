/* Another root, the old way: with it the walls of the first can be climbed. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "another root, from which the walls of the first can be climbed",
       .source = "chroot(2)", .event = "call.denied", .with = "call=chroot", .works = AS_ROOT,
       .flags = NESTING)
{
	return chroot("/");
}
