/* Names in the host's /tmp. */
#include "../attack.h"

#include <dirent.h>

ATTACK(FILES, "root", .gain = "what other programs leave in /tmp",
       .source = "a /tmp that all share", .works = OUTSIDE)
{
	char mine[256] = "";
	DIR *d = opendir("/tmp");
	struct dirent *e;

	if (sscanf(target("dir"), "/tmp/%255[^/]", mine) != 1)
		return NOT_HERE;
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, mine) == 0)
			return 0;
	return denied(ENOENT);
}
