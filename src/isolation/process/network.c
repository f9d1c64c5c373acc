/* The box's own network namespace: loopback, and the socket that answers name lookups.
 *
 * Making a network namespace takes the kernel about as long as all the mounts of a box, so a helper
 * process makes it while the set-up child mounts. The helper has the set-up child's capabilities in
 * the box's user namespace, and is gone before any code of the box runs. It shares the child's
 * memory, so that neither pays for a copy; the two share errno too, which only a failure sets, and
 * a failure of either ends both. */
#include "process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define STAGE "isolation"

static int loopback_up(struct pale_err *err)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot bring up loopback");
	return 0;
}

static int dns_socket(struct pale_err *err)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(53),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open the box's DNS port");
	return take_fd(&fd);
}

/* Shares memory and descriptors with the set-up child, which does not look at *n meanwhile.
 * Allocates nothing: the two share what the C library keeps a thread, too. */
static int help(void *arg)
{
	struct network *n = arg;

	/* /proc is still the host's, and shows us as the host sees us. */
	if (unshare(CLONE_NEWNET) < 0) {
		err_set(&n->err, PALE_E_HOST, STAGE, errno, "cannot make a network namespace");
		return 0;
	}
	n->fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (n->fd < 0)
		err_set(&n->err, PALE_E_SYSTEM, STAGE, errno, "cannot open the network namespace");
	else if (loopback_up(&n->err) == 0)
		n->dns_fd = dns_socket(&n->err);
	return 0;
}

int network_start(struct network *n, struct pale_err *err)
{
	n->fd = n->dns_fd = -1;
	n->err.code = PALE_OK;
	n->helper = clone(help, n->stack + sizeof(n->stack), CLONE_VM | CLONE_FILES | SIGCHLD, n);
	return n->helper < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot start a helper")
			     : 0;
}

int network_enter(struct network *n, int *ret_dns_fd, struct pale_err *err)
{
	int status = 0;

	while (waitpid(n->helper, &status, 0) < 0 && errno == EINTR)
		;
	if (n->err.code != PALE_OK) {
		*err = n->err;
		return -(int)err->code;
	}
	if (n->fd < 0 || n->dns_fd < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "the network helper died (wait status %d)", status);
	if (setns(n->fd, CLONE_NEWNET) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot enter the network namespace");
	close_fd(&n->fd);
	*ret_dns_fd = n->dns_fd;
	return 0;
}
