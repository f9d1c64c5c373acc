/* The value of a secret, in a variable. */
#include "../attack.h"

ATTACK(NETWORK, "secrets", .gain = "the value of a secret, where only a placeholder was to be",
       .source = "credentials in the environment of agents", .works = SOME_KERNELS,
       .needs = "the variable CANARY", .flags = NETWORKS)
{
	for (char **e = environ; *e; e++)
		if (strstr(*e, CANARY))
			return 0;
	return denied(ENOENT);
}
