/* A second name for a file that is shown, where writing is allowed. */
#include "../attack.h"

ATTACK(FILES, "second-lock", .gain = "a host's file in a writable place",
       .source = "protected_hardlinks, proc_sys_fs(5)", .works = OUTSIDE)
{
	char path[512], other[512];
	long r;

	snprintf(path, sizeof(path), "%s/file", target("read"));
	snprintf(other, sizeof(other), "%s/linked", target("overlay"));
	r = link(path, other);
	if (r == 0)
		unlink(other);
	return r;
}
