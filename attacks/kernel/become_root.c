/* User id 0. */
#include "../attack.h"

ATTACK(KERNEL, "privileges", .gain = "root", .source = "setuid(2)", .works = AS_ROOT)
{
	unsigned long inside, outside = 1, count;
	FILE *f = fopen("/proc/self/uid_map", "re");

	bool was = getuid() == 0;

	if (setuid(0) < 0)
		return -1;
	if (!was)
		return 0;
	/* A box's own root is another number outside. */
	while (f && fscanf(f, "%lu %lu %lu", &inside, &outside, &count) == 3)
		if (inside == 0 && outside == 0)
			return 0;
	return denied(EPERM);
}
