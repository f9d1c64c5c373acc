/* The machine's memory. */
#include "attack.h"

#include <fcntl.h>

ATTACK
{
	return open("/dev/mem", O_RDONLY | O_CLOEXEC);
}
