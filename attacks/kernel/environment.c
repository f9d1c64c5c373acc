/* The caller's environment. */
#include "../attack.h"

ATTACK(KERNEL, "privileges", .gain = "keys and tokens in variables", .source = "environ(7)",
       .works = SOME_KERNELS, .needs = "the variable CANARY")
{
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "CANARY=", 7) == 0)
			return 0;
	return denied(ENOENT);
}
