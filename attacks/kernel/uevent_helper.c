/* The program that the kernel runs, as root, when devices come. */
#include "attack.h"

#include <fcntl.h>

ATTACK
{
	int fd = open("/sys/kernel/uevent_helper", O_WRONLY | O_CLOEXEC);

	return fd < 0 && access("/sys/kernel/uevent_helper", F_OK) < 0 && getenv("ATTACK_OUTSIDE")
		       ? NOT_HERE
		       : fd;
}
