/* The same with garbage in the upper half of the request (CVE-2019-10063). */
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

ATTACK(KERNEL, "calls",
       .gain = "commands typed for the person at the terminal, by a request with garbage in its "
	       "upper half",
       .source = "CVE-2019-10063", .event = "call.denied", .with = "call=ioctl",
       .works = SOME_KERNELS, .needs = "TIOCSTI")
{
	int fd = terminal();

	return fd < 0 ? NOT_HERE : syscall(SYS_ioctl, fd, 0xffffffff00000000ul | TIOCSTI, "x");
}
