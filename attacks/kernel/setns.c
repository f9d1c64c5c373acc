/* Another namespace, through /proc. */
#include "../attack.h"

#include <fcntl.h>
#include <sched.h>

ATTACK(KERNEL, "calls", .gain = "another namespace", .source = "setns(2)", .event = "call.denied",
       .with = "call=setns", .works = AS_ROOT, .flags = NESTING)
{
	int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : setns(fd, 0);
}
