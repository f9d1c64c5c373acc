/* Semaphores of the host's programs, by their number. */
#include "../attack.h"

#include <sys/sem.h>

ATTACK(KERNEL, "processes", .gain = "a lock of programs of the caller's", .source = "sysvipc(7)",
       .works = OUTSIDE)
{
	return semctl((int)needed_number("sem"), 0, GETVAL);
}
