/* Pasting into a virtual console. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/* A terminal of one's own as the controlling one: what an attacker would have of the caller's. */
static int terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return -1;
	if (fork() > 0) {
		int status;

		wait(&status);
		_exit(WEXITSTATUS(status));
	}
	setsid();
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave >= 0)
		ioctl(slave, TIOCSCTTY, 0);
	return slave;
}

ATTACK(KERNEL, "calls", .gain = "text pasted into a virtual console",
       .source = "ioctl_console(2); CVE-2023-28100", .event = "call.denied", .with = "call=ioctl",
       .works = SOME_KERNELS, .needs = "a virtual console")
{
	char what = 6; /* the shift state: read only */
	int fd = open("/dev/tty1", O_RDWR | O_NOCTTY | O_CLOEXEC);
	long r;

	if (fd < 0)
		fd = terminal();
	r = fd < 0 ? NOT_HERE : ioctl(fd, TIOCLINUX, &what);
	return r < 0 && errno == ENOTTY ? NOT_HERE : r;
}
