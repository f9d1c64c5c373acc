/* Shared memory of other programs, by its list. */
#include "../attack.h"

#include <sys/ipc.h>
#include <sys/shm.h>

ATTACK(KERNEL, "processes", .gain = "shared memory of the host's programs", .source = "sysvipc(7)",
       .works = OUTSIDE)
{
	struct shmid_ds d;
	struct {
		int used_ids;
		unsigned long pages[3], attempts, successes;
	} info = {0};

	(void)needed("shm"); /* one of them */
	if (shmctl(0, 14 /* SHM_INFO */, &d) < 0)
		return -1;
	memcpy(&info, &d, sizeof(info));
	errno = ENOENT;
	return info.used_ids > 0 ? 0 : -1;
}
