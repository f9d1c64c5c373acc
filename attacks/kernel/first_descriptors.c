/* The descriptors of the first process. */
#include "../attack.h"

#include <dirent.h>

ATTACK(KERNEL, "processes", .gain = "the socket to the supervisor", .source = "CVE-2024-21626",
       .works = OUTSIDE)
{
	char path[300], link[256];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%s/fd", target("first"));
	d = opendir(path);
	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%s/fd/%.32s", target("first"), e->d_name);
		if (*e->d_name != '.' && readlink(path, link, sizeof(link)) >= 0)
			return 0;
	}
	return denied(EACCES);
}
