/* A user namespace: all capabilities over what is in it. */
#include "attack.h"

#include <sched.h>

ATTACK
{
	return unshare(CLONE_NEWUSER);
}
