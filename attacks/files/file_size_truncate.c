/* A file that is as large with nothing in it. */
#include "../attack.h"

#include <signal.h>

ATTACK(FILES, "file_size", .gain = "a file that fills a disk by itself", .source = "getrlimit(2)",
       .limit = "file_size", .works = LIMIT, .flags = ALONE)
{
	char path[] = "/tmp/attack-XXXXXX";
	int fd = mkstemp(path);
	long r;

	/* Else it is killed, which is denied as well. */
	signal(SIGXFSZ, SIG_IGN);
	unlink(path);
	r = ftruncate(fd, target_number("max") + 1);
	return r < 0 ? -1 : 0;
}
