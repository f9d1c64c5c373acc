/* More open files than are allowed. */
#include "../attack.h"

ATTACK(RESOURCES, "open_files", .gain = "the host's table of open files", .source = "getrlimit(2)",
       .limit = "open_files", .works = LIMIT, .flags = ALONE)
{
	long got = 0;

	while (got <= target_number("max") + 16 && dup(0) >= 0)
		got++;
	printf("got %ld\n", got);
	return got > target_number("max") ? 0 : -1;
}
