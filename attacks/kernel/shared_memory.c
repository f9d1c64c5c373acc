/* Shared memory of the host's programs, by its number. */
#include "../attack.h"

#include <sys/shm.h>

ATTACK(KERNEL, "processes", .gain = "what programs of the caller's share", .source = "sysvipc(7)",
       .works = OUTSIDE)
{
	char *at = shmat((int)needed_number("shm"), NULL, SHM_RDONLY);

	return at == (void *)-1				  ? -1
	       : strncmp(at, CANARY, strlen(CANARY)) == 0 ? 0
							  : denied(ENODATA);
}
