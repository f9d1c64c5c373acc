/* A message queue of another program. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(KERNEL, "processes", .gain = "messages of the host's programs", .source = "mq_overview(7)",
       .works = OUTSIDE)
{
	return syscall(SYS_mq_open, needed("queue"), O_RDONLY, 0, NULL);
}
