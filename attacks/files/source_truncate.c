/* A file that is shown read-only, cut. */
#include "../attack.h"

#include <sys/stat.h>

ATTACK(FILES, "second-lock", .gain = "the host's files, emptied without being opened",
       .source = "truncate(2)", .works = OUTSIDE)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/file", target("read"));
	return stat(path, &st) < 0 ? -1 : truncate(path, st.st_size);
}
