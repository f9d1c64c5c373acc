/* The program that the kernel runs, as root, when devices come. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "privileges",
       .gain = "a program of its own run by the kernel, as root, when a device comes",
       .source = "kernel.org, uevent_helper", .works = SOME_KERNELS, .needs = "uevent_helper")
{
	int fd = open("/sys/kernel/uevent_helper", O_WRONLY | O_CLOEXEC);

	return fd < 0 && access("/sys/kernel/uevent_helper", F_OK) < 0 ? NOT_HERE : fd;
}
