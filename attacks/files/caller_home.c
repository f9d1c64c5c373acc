/* The caller's home directory. */
#include "../attack.h"

#include <dirent.h>

ATTACK(FILES, "root", .gain = "keys, histories, settings",
       .source = "ssh keys are what most attackers look for", .works = OUTSIDE)
{
	return opendir(target("home")) ? 0 : -1;
}
