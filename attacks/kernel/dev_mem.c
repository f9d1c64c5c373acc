/* The machine's memory. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "privileges", .gain = "the machine's memory", .source = "mem(4)",
       .works = SOME_KERNELS, .needs = "/dev/mem")
{
	return open("/dev/mem", O_RDONLY | O_CLOEXEC);
}
