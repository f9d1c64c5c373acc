/* The emergency keys: a crash with one letter. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "privileges", .gain = "the emergency keys: a crash with one letter",
       .source = "proc_sysrq-trigger(5)", .works = SOME_KERNELS, .needs = "the emergency keys")
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);

	return fd < 0 && access("/proc/sysrq-trigger", F_OK) < 0 ? NOT_HERE : fd;
}
