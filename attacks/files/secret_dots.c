/* By more dots than there are directories. */
#include "dots.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "any file of the caller's, by a path that leads above the root",
       .source = "path traversal (CWE-22)", .works = OUTSIDE)
{
	return read_canary(open(dots_to_secret(), O_RDONLY | O_CLOEXEC));
}
