/* What lies below a mount. */
#include "../attack.h"

#include <sys/mount.h>

ATTACK(KERNEL, "calls", .gain = "what lies below a mount", .source = "umount(2)",
       .event = "call.denied", .with = "call=umount2", .works = OUTSIDE, .flags = NESTING)
{
	return reached(umount2("/nowhere", 0), ENOENT);
}
