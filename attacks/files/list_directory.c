/* The names in a directory of the caller's. */
#include "../attack.h"

#include <dirent.h>

ATTACK(FILES, "root", .gain = "the names of files, where their contents are out of reach",
       .source = "readdir(3)", .works = OUTSIDE)
{
	return opendir(target("dir")) ? 0 : -1;
}
