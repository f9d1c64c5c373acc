/* A message queue of another program. */
#include "attack.h"

#include <fcntl.h>

ATTACK
{
	return syscall(SYS_mq_open, NAME("pale-attack"), O_RDONLY, 0, NULL);
}
