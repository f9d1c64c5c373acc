/* Shared memory that stays when its maker has ended. */
#include "memory.h"

#include <sys/shm.h>

ATTACK(RESOURCES, "memory", .gain = "the host's memory, held by nobody", .source = "shmget(2)",
       .event = "limit.hit", .with = "limit=memory", .limit = "memory",
       .set = "limits.memory=64MiB", .works = LIMIT, .flags = ALONE)
{
	for (long got = 0; got < want(); got += PIECE) {
		int id = shmget(IPC_PRIVATE, PIECE, 0600 | IPC_CREAT);
		char *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

		if (p == (void *)-1)
			return -1;
		memset(p, 1, PIECE);
		if (target_number("outside"))
			shmctl(id, IPC_RMID, NULL);
	}
	return 0;
}
