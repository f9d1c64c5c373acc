/* A larger file than is allowed. */
#include "large.h"

ATTACK(FILES, "file_size", .gain = "a file that fills a disk by itself", .source = "getrlimit(2)",
       .limit = "file_size", .works = LIMIT, .flags = ALONE)
{
	return pwrite(nameless_file(), "x", 1, target_number("max")) < 0 ? -1 : 0;
}
