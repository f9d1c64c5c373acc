/* The number of this machine. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "what tells this machine from all others", .source = "machine-id(5)",
       .works = SOME_KERNELS, .needs = "a machine id")
{
	return open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
}
