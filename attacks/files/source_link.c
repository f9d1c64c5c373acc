/* A symbolic link among files that are shown. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "sources", .gain = "what the link names outside", .source = "CVE-2026-39861",
       .works = OUTSIDE)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/link", target("read"));
	return read_canary(open(path, O_RDONLY | O_CLOEXEC));
}
