/* Its mode. */
#include "../attack.h"

#include <sys/stat.h>

ATTACK(FILES, "sources", .gain = "a file of the host's that others may then write",
       .source = "chmod(2)", .works = OUTSIDE)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/file", target("read"));
	return stat(path, &st) < 0 ? -1 : chmod(path, st.st_mode & 07777);
}
