/* A FIFO in what is copied out. */
#include "../attack.h"

#include <sys/stat.h>

ATTACK(FILES, "results", .gain = "a program of the host's that waits for ever",
       .source = "mkfifo(3)", .broken = "collected-fifo", .works = OUTSIDE)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/fifo", target("collect"));
	return mkfifo(path, 0666);
}
