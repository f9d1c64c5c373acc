/* A file of the caller's by its path. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "any file of the caller's",
       .source = "the first thing that every attacker tries", .works = OUTSIDE)
{
	return read_canary(open(target("secret"), O_RDONLY | O_CLOEXEC));
}
