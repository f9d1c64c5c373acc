/* Another process's memory, thrown out. */
#include "../attack.h"

#include <sys/mman.h>
#include <sys/uio.h>

ATTACK(KERNEL, "calls", .gain = "another process's memory, thrown out",
       .source = "process_madvise(2)", .event = "call.denied", .with = "call=process_madvise",
       .works = OUTSIDE)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec v = {page, 4096};

	return pidfd < 0 ? -1 : syscall(SYS_process_madvise, pidfd, &v, 1, MADV_COLD, 0);
}
