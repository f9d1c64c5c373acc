/* The environment of the first process. */
#include "attack.h"

#include <fcntl.h>

ATTACK
{
	char path[64];

	/* Outside, the test names a process of its own. */
	snprintf(path, sizeof(path), "/proc/%s/environ", NAME("1"));
	return open(path, O_RDONLY | O_CLOEXEC);
}
