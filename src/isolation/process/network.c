/* The box's own network namespace: loopback, and the socket that answers name lookups.
 *
 * Making a network namespace takes the kernel about as long as all the mounts of a box, so a helper process
 * makes it while the set-up child mounts. The helper is a copy of the set-up child, with its
 * capabilities in the box's user namespace, and is gone before any code of the box runs. */
#include "process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fd.h"

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

static int help(int socket_fd, struct pale_err *err)
{
	int fds[2], r;

	/* /proc is still the host's, and shows us as the host sees us. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || unshare(CLONE_NEWNET) < 0)
		return err_set(err, PALE_E_HOST, STAGE, errno, "cannot make a network namespace");
	fds[0] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fds[0] < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open the network namespace");
	r = loopback_up(err);
	if (r < 0)
		return r;
	fds[1] = dns_socket(err);
	if (fds[1] < 0)
		return fds[1];
	r = fd_send(socket_fd, err, sizeof(*err), fds, 2);
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot hand over the network namespace") : 0;
}

int network_start(struct network *n, struct pale_err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a socket pair");
	n->socket = pair[0];
	n->helper = fork();
	if (n->helper < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot start a helper");
	if (n->helper == 0) {
		struct pale_err failure = {.code = PALE_OK};

		if (help(pair[1], &failure) < 0)
			(void)!fd_send(pair[1], &failure, sizeof(failure), NULL, 0);
		_exit(0);
	}
	close(pair[1]);
	return 0;
}

int network_enter(struct network *n, int *ret_dns_fd, struct pale_err *err)
{
	struct pale_err said = {.code = PALE_OK};
	int fds[2] = {-1, -1}, r = 0;
	size_t nfds = 0;
	ssize_t got = fd_recv(n->socket, &said, sizeof(said), fds, 2, &nfds);

	close_fd(&n->socket);
	if (got == (ssize_t)sizeof(said) && said.code != PALE_OK) {
		*err = said;
		r = -(int)said.code;
	} else if (got != (ssize_t)sizeof(said) || nfds != 2) {
		r = err_set(err, PALE_E_SYSTEM, STAGE, got < 0 ? (int)-got : 0, "the network helper failed");
	} else if (setns(fds[0], CLONE_NEWNET) < 0) {
		r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot enter the network namespace");
	}
	close_fd(&fds[0]);
	*ret_dns_fd = fds[1];
	while (waitpid(n->helper, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}
