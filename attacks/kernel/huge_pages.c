/* Huge pages are from a pool of the host's, and no limit of memory counts them. */
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "../attack.h"

#define SIZE ((size_t)2 << 20)

ATTACK(KERNEL, "calls", .gain = "the host's pool of huge pages, which no limit of memory counts",
       .source = "memfd_create(2)", .event = "call.denied", .with = "call=memfd_create",
       .works = OUTSIDE)
{
	int fd = memfd_create("huge", MFD_HUGETLB), id;

	if (fd >= 0)
		return fd;
	id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | SHM_HUGETLB | SHM_NORESERVE | 0600);
	if (id >= 0) {
		shmctl(id, IPC_RMID, NULL);
		return 0;
	}
	/* Without a reservation it works also where the pool is empty. */
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0) == MAP_FAILED
		       ? -1
		       : 0;
}
