/* Reading a stopped process of the box: memory, descriptors, program. In the supervisor. Everything
 * read is hostile and may change while it is read; sizes are bounded here, and the caller checks
 * afterwards that the process is still the one that asked. */
#include "supervise/notify_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/fd.h"
#include "base/num.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* 6.9 */
#endif

static ssize_t read_some(pid_t pid, uint64_t address, void *ret, size_t len)
{
	struct iovec to = {ret, len};
	/* The box chose the number: it is an address there, not here. */
	struct iovec from = {(void *)(uintptr_t)address, len};
	_cleanup_close_ int fd = -1;
	char name[32];
	ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);

	if (n >= 0 || (errno != ENOSYS && errno != EPERM))
		return n < 0 ? -errno : n;
	/* An outer sandbox refuses the call: the file has the same access check. */
	if (address > INT64_MAX)
		return -EFAULT;
	snprintf(name, sizeof(name), "/proc/%d/mem", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = pread(fd, ret, len, (off_t)address);
	return n < 0 ? -errno : n;
}

int notify_read(pid_t pid, uint64_t address, void *ret, size_t len)
{
	ssize_t n = read_some(pid, address, ret, len);

	return n < 0 ? (int)n : (size_t)n < len ? -EFAULT : 0;
}

ssize_t notify_read_string(pid_t pid, uint64_t address, char *ret, size_t size, bool *ret_cut)
{
	size_t got = 0;

	*ret_cut = false;
	while (got + 1 < size) {
		/* Never over a page's end in one go: the next page may not be there. */
		size_t chunk = 4096 - (size_t)((address + got) & 4095), room = size - 1 - got;
		ssize_t n = read_some(pid, address + got, ret + got, chunk < room ? chunk : room);
		char *end;

		if (n <= 0)
			return n < 0 ? n : -EFAULT;
		end = memchr(ret + got, 0, (size_t)n);
		if (end)
			return end - ret;
		got += (size_t)n;
	}
	ret[got] = 0;
	*ret_cut = true;
	return (ssize_t)got;
}

ssize_t notify_read_link(pid_t pid, const char *name, char *ret, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	n = readlink(path, ret, size - 1);
	if (n < 0)
		return -errno;
	ret[n] = 0;
	return n;
}

void notify_read_program(pid_t pid, struct notify_event *ev)
{
	_cleanup_close_ int fd = -1;
	char path[32];
	ssize_t n = -1;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, ev->comm, sizeof(ev->comm) - 1);
	if (n > 0 && ev->comm[n - 1] == '\n')
		n--;
	ev->comm[n > 0 ? n : 0] = 0;
	if (notify_read_link(pid, "exe", ev->exe, sizeof(ev->exe)) < 0)
		ev->exe[0] = 0;
}

/* The thread group of a thread, for kernels whose pidfds are of groups only. */
static pid_t group_of(pid_t tid)
{
	_cleanup_file_ FILE *f = NULL;
	char line[128];
	uint64_t tgid;

	snprintf(line, sizeof(line), "/proc/%d/status", tid);
	f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "Tgid:\t", 6) == 0) {
			line[strcspn(line, "\n")] = 0;
			if (num_parse_u64(line + 6, INT_MAX, &tgid) == 0)
				return (pid_t)tgid;
		}
	return -1;
}

int notify_read_fd(pid_t pid, int fd)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, PIDFD_THREAD);
	int copy;

	if (pidfd < 0)
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		pid_t group = group_of(pid);

		pidfd = group > 0 ? (int)syscall(SYS_pidfd_open, group, 0) : -1;
	}
	if (pidfd < 0)
		return -ESRCH;
	copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	return copy < 0 ? -errno : copy;
}
