/* A file that is shown read-only, by another name. */
#include "../attack.h"

ATTACK(FILES, "second-lock", .gain = "the host's files, renamed", .source = "rename(2)",
       .works = OUTSIDE)
{
	char path[512], other[512];
	long r;

	snprintf(path, sizeof(path), "%s/file", target("read"));
	snprintf(other, sizeof(other), "%s/renamed", target("read"));
	r = rename(path, other);
	if (r == 0)
		rename(other, path);
	return r;
}
