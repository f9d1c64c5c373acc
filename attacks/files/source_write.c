/* A file that is shown read-only. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "sources", .gain = "the host's file behind what is read-only inside",
       .source = "CVE-2026-46695", .event = "file.blocked", .with = "path=/verify/read/file",
       .works = OUTSIDE, .flags = WRITES)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/file", target("read"));
	return open(path, O_WRONLY | O_CLOEXEC);
}
