/* The descriptors of the first process. */
#include "../attack.h"

#include <dirent.h>

ATTACK(KERNEL, "processes", .gain = "the socket to the supervisor", .source = "CVE-2024-21626",
       .works = OUTSIDE)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/fd", target("first"));
	return opendir(path) ? 0 : -1;
}
