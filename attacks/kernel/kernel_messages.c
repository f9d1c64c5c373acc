/* The kernel's log, as a device. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "privileges", .gain = "the kernel's log, with its addresses",
       .source = "kmsg, kernel.org", .works = AS_ROOT)
{
	return open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}
