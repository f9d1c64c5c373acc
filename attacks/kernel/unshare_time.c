/* A time namespace, whose flag lies where clone() has its exit signal. */
#include "attack.h"

#include <sched.h>

ATTACK
{
	return unshare(0x80 /* CLONE_NEWTIME */);
}
