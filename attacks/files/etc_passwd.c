/* The host's users. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "names of the host's users", .source = "passwd(5)", .works = OUTSIDE)
{
	/* A box's own has three. */
	FILE *f = fopen("/etc/passwd", "re");
	int lines = 0, c;

	while (f && (c = getc(f)) != EOF)
		lines += c == '\n';
	return lines > 4 ? 0 : denied(ENOENT);
}
