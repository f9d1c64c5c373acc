/* Descriptors: see fd.h. Usable after clone(): nothing here allocates. */
#include "fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define MAX_PASSED 64

int fd_openat2(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.mode = flags & (O_CREAT | O_TMPFILE) & ~O_DIRECTORY ? mode : 0,
		.resolve = resolve,
	};
	long fd;

	do
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

int fd_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	return fd_openat2(dirfd, path, flags | O_NOFOLLOW, mode,
			  RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
}

int fd_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t fd_read_full(int fd, void *data, size_t len)
{
	char *p = data;
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(fd, p + got, len - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

ssize_t fd_pread_full(int fd, void *data, size_t len, int64_t at)
{
	char *p = data;
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, p + got, len - got, at + (int64_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static int send_with(int sock, const void *data, size_t len, const int *fds, size_t nfds, int flags)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * MAX_PASSED)];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)data, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (nfds > MAX_PASSED)
		return -EINVAL;
	if (nfds) {
		struct cmsghdr *c;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EMSGSIZE;
}

int fd_send(int sock, const void *data, size_t len, const int *fds, size_t nfds)
{
	return send_with(sock, data, len, fds, nfds, 0);
}

int fd_send_now(int sock, const void *data, size_t len, const int *fds, size_t nfds)
{
	return send_with(sock, data, len, fds, nfds, MSG_DONTWAIT);
}

ssize_t fd_recv(int sock, void *data, size_t len, int *fds, size_t max_fds, size_t *ret_nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * MAX_PASSED)];
	} control;
	struct iovec iov = {data, len};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	size_t got = 0;
	bool too_many = false;
	ssize_t n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (got < max_fds) {
				fds[got++] = fd;
			} else {
				close(fd);
				too_many = true;
			}
		}
	}
	if (too_many || (msg.msg_flags & (MSG_CTRUNC | MSG_TRUNC))) {
		for (size_t i = 0; i < got; i++)
			close(fds[i]);
		return -EMSGSIZE;
	}
	if (ret_nfds)
		*ret_nfds = got;
	return n;
}

int fd_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_off_stdio(int *fd)
{
	int higher;

	if (*fd > STDERR_FILENO)
		return 0;
	higher = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (higher < 0)
		return -errno;
	close(*fd);
	*fd = higher;
	return 0;
}
