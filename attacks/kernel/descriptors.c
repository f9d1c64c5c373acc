/* Descriptors that the caller did not mean to hand over. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "privileges", .gain = "whatever the caller had open", .source = "CVE-2024-21626",
       .works = SOME_KERNELS, .needs = "a descriptor that was not closed")
{
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 0;
	return denied(EBADF);
}
