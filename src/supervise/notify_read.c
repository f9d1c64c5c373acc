/* Reading a stopped process of the box: memory, descriptors, program. In the supervisor. Everything
 * read is hostile and may change while it is read; sizes are bounded here, and the caller checks
 * afterwards that the process is still the one that asked. */
#include "supervise/notify_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#include "base/fd.h"

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

/* By the name that the kernel gives to the socket's file. A copy of the descriptor would tell more,
 * and make us the one to close it last: with SO_LINGER that takes as long as the box likes. */
const char *notify_read_protocol(pid_t pid, int fd)
{
	static const struct {
		const char *name, *protocol;
	} names[] = {
		{"TCP", "tcp"},	  {"TCPv6", "tcp"}, {"UDP", "udp"},
		{"UDPv6", "udp"}, {"PING", "icmp"}, {"PINGv6", "icmp"},
	};
	char path[48], name[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	n = getxattr(path, "system.sockprotoname", name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(name, names[i].name) == 0)
			return names[i].protocol;
	return "";
}
