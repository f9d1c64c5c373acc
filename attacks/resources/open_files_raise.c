/* The limit itself, raised. */
#include "../attack.h"

#include <sys/resource.h>

ATTACK(RESOURCES, "open_files", .gain = "the host's table of open files", .source = "setrlimit(2)",
       .limit = "open_files", .works = LIMIT, .flags = ALONE)
{
	struct rlimit l = {(rlim_t)target_number("max") + 1, (rlim_t)target_number("max") + 1};

	return setrlimit(RLIMIT_NOFILE, &l);
}
