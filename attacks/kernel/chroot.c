/* Another root, the old way: with it the walls of the first can be climbed. */
#include "attack.h"

ATTACK
{
	return chroot("/");
}
