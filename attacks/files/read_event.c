/* An open that is refused, for reading. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "events", .gain = "to look around unseen", .source = "audit.files: all",
       .event = "file.blocked", .works = OUTSIDE)
{
	return open("/proc/1/mem", O_RDONLY | O_CLOEXEC) < 0
		       ? read_canary(open(target("secret"), O_RDONLY | O_CLOEXEC))
		       : 0;
}
