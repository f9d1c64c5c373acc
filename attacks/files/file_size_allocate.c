/* A file that is as large before anything is written. */
#include "large.h"

#include <fcntl.h>

ATTACK(FILES, "file_size", .gain = "a file that fills a disk by itself", .source = "getrlimit(2)",
       .limit = "file_size", .works = LIMIT, .flags = ALONE)
{
	return fallocate(nameless_file(), 0, target_number("max"), 4096) < 0 ? -1 : 0;
}
