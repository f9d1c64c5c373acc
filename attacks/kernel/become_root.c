/* User id 0. */
#include "../attack.h"

ATTACK(KERNEL, "privileges", .gain = "root", .source = "setuid(2)", .works = AS_ROOT)
{
	return setuid(0);
}
