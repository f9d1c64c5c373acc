/* What hides it moved away. */
#include "../attack.h"

ATTACK(FILES, "hide", .gain = "what the policy hides, laid bare", .source = "CVE-2025-52565",
       .works = OUTSIDE)
{
	char path[512], other[512];
	long r;

	snprintf(path, sizeof(path), "%s/hidden", target("read"));
	snprintf(other, sizeof(other), "%s/away", target("read"));
	r = rename(path, other);
	if (r == 0)
		rename(other, path);
	return r;
}
