/* Addresses of the kernel's functions. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "privileges", .gain = "where in the kernel to jump to",
       .source = "kptr_restrict, proc_sys_kernel(5)", .works = AS_ROOT)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[256];
	int left = 100;

	while (f && left-- > 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, "0000000000000000", 16) != 0 && line[0] == 'f')
			return 0;
	return denied(EACCES);
}
