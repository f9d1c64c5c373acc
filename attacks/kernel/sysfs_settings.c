/* Any file of /sys that can be written. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "privileges", .gain = "devices, control groups, the kernel's parameters",
       .source = "sysfs(5)", .works = AS_ROOT)
{
	static const char *const paths[] = {
		"/sys/kernel/mm/transparent_hugepage/enabled", "/sys/fs/cgroup/cgroup.procs",
		"/sys/module/kernel/parameters/panic", "/sys/power/state",
		"/sys/fs/cgroup/memory/cgroup.procs"};
	long r = denied(ENOENT);

	for (size_t i = 0; r < 0 && i < sizeof(paths) / sizeof(*paths); i++)
		r = open(paths[i], O_WRONLY | O_CLOEXEC);
	return r;
}
