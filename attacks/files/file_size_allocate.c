/* A file that is as large before anything is written. */
#include "../attack.h"

#include <fcntl.h>
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
	r = fallocate(fd, 0, target_number("max"), 4096);
	return r < 0 ? -1 : 0;
}
