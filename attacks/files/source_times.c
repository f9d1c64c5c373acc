/* Its times. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

ATTACK(FILES, "sources", .gain = "a change that nobody sees", .source = "utimensat(2)",
       .works = OUTSIDE)
{
	char path[512];
	const struct timespec same[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};

	snprintf(path, sizeof(path), "%s/file", target("read"));
	return utimensat(AT_FDCWD, path, same, 0);
}
