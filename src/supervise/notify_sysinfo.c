/* sysinfo(): the size of the machine, told for the box. Programs that ask the kernel instead of
 * /proc (the Java virtual machine sizes its heap by it) would see the host. In the supervisor,
 * while the process that asks is stopped; what is written to is its own memory. */
#include "supervise/notify_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/cleanup.h"

int notify_sysinfo(struct notify_call *call, uint64_t memory_bytes)
{
	_cleanup_close_ int fd = -1;
	struct sysinfo info;
	char path[32];

	if (!memory_bytes || call->args[0] > INT64_MAX || sysinfo(&info) < 0)
		return -ENOSYS;
	if (info.totalram * info.mem_unit > memory_bytes) {
		info.mem_unit = 1;
		info.totalram = info.freeram = memory_bytes;
	}
	info.sharedram = info.bufferram = info.totalswap = info.freeswap = info.totalhigh =
		info.freehigh = 0;
	/* The file stays with the process it was opened for, so what is checked after the opening
	 * holds for the writing, whoever gets the number next. */
	snprintf(path, sizeof(path), "/proc/%d/mem", call->pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || !notify_still_there(call))
		return -ENOSYS;
	return pwrite(fd, &info, sizeof(info), (off_t)call->args[0]) == (ssize_t)sizeof(info)
		       ? 0
		       : -EFAULT;
}
