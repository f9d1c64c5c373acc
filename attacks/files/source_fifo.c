/* A FIFO among files that are shown. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "sources", .gain = "a host process that reads from the FIFO", .source = "fifo(7)",
       .works = OUTSIDE)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/fifo", target("read"));
	return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}
