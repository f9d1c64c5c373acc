/* Disks, before everybody else. */
#include "../attack.h"

ATTACK(KERNEL, "privileges", .gain = "the disks, before everybody else", .source = "ioprio_set(2)",
       .works = AS_ROOT)
{
	return syscall(SYS_ioprio_set, 1, 0, 1 << 13);
}
