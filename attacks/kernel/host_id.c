/* A process of the box's user, outside. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "identity", .gain = "files and processes of whoever has that number on the host",
       .source = "user_namespaces(7); CVE-2018-18955", .works = AS_ROOT)
{
	unsigned long inside, outside, count;
	FILE *f = fopen("/proc/self/uid_map", "re");

	/* All of the host's ids, or its root. */
	while (f && fscanf(f, "%lu %lu %lu", &inside, &outside, &count) == 3)
		if (outside == 0 || count > 65536)
			return 0;
	return denied(EPERM);
}
