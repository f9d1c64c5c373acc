/* The kernel's memory, as a core file. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "privileges", .gain = "the kernel's memory", .source = "proc_kcore(5)",
       .works = SOME_KERNELS, .needs = "/proc/kcore")
{
	return open("/proc/kcore", O_RDONLY | O_CLOEXEC);
}
