/* A file in a directory that is hidden. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "hide", .gain = "what the policy hides",
       .source = "deny rules that one platform does not enforce", .works = OUTSIDE)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/hidden/secret", target("read"));
	return read_canary(open(path, O_RDONLY | O_CLOEXEC));
}
