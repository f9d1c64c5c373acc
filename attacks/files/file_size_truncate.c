/* A file that is as large with nothing in it. */
#include "large.h"

ATTACK(FILES, "file_size", .gain = "a file that fills a disk by itself", .source = "getrlimit(2)",
       .limit = "file_size", .works = LIMIT, .flags = ALONE)
{
	return ftruncate(nameless_file(), target_number("max") + 1) < 0 ? -1 : 0;
}
