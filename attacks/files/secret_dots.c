/* By more dots than there are directories. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "any file of the caller's, by a path that leads above the root",
       .source = "path traversal (CWE-22)", .works = OUTSIDE)
{
	char path[700] = "";

	for (int i = 0; i < 40; i++)
		strcat(path, "../");
	strncat(path, target("secret") + 1, 500);
	return read_canary(open(path, O_RDONLY | O_CLOEXEC));
}
