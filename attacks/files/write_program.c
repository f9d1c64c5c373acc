/* A program of the host's, opened for writing. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "code in the next program that the host runs",
       .source = "CVE-2019-5736", .event = "file.blocked", .with = "path=/usr/bin/env",
       .works = AS_ROOT, .flags = WRITES)
{
	return open("/usr/bin/env", O_WRONLY | O_CLOEXEC);
}
