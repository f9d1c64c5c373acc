/* The host's name. */
#include "../attack.h"

ATTACK(KERNEL, "processes", .gain = "which machine this is", .source = "uname(2)", .works = OUTSIDE)
{
	char name[256] = "";

	gethostname(name, sizeof(name) - 1);
	return strcmp(name, needed("hostname")) == 0 ? 0 : denied(ENOENT);
}
