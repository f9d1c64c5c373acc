/* Any capability at all. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "privileges", .gain = "what is left of root", .source = "capabilities(7)",
       .works = AS_ROOT)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned long long set;

	/* The bounding set only bounds what no_new_privs forbids anyway. */
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Cap%*3c: %llx", &set) == 1 && strncmp(line, "CapBnd", 6) != 0 &&
		    set)
			return 0;
	return denied(EPERM);
}
