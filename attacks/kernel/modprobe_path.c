/* The program that the kernel runs, as root, to load modules. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "privileges",
       .gain = "a program of its own run by the kernel, as root, to load a module",
       .source = "proc_sys_kernel(5)", .works = SOME_KERNELS, .needs = "modules")
{
	int fd = open("/proc/sys/kernel/modprobe", O_WRONLY | O_CLOEXEC);

	return fd < 0 && access("/proc/sys/kernel/modprobe", F_OK) < 0 ? NOT_HERE : fd;
}
