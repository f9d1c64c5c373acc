/* The caller's home directory. */
#include "../attack.h"

#include <dirent.h>
#include <sys/stat.h>

ATTACK(FILES, "root", .gain = "keys, histories, settings",
       .source = "ssh keys are what most attackers look for", .works = OUTSIDE)
{
	struct stat st;
	char is[64];

	if (stat(target("home"), &st) < 0 || !opendir(target("home")))
		return -1;
	/* The box has one of its own by that name, where its user has the caller's. */
	snprintf(is, sizeof(is), "%lu-%ld", (unsigned long)st.st_ino, (long)st.st_ctime);
	return strcmp(is, needed("home_is")) == 0 ? 0 : denied(ENOENT);
}
