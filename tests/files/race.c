/* Swaps DIR with a symbolic link to TARGET, as fast as it can, until killed.
 * usage: race DIR TARGET
 *
 * The link is made beside DIR (DIR.link); both are exchanged by one call, so that DIR always is one
 * or the other. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char link[4096];

	if (argc != 3)
		return 2;
	snprintf(link, sizeof(link), "%s.link", argv[1]);
	if (symlink(argv[2], link) < 0)
		return 1;
	for (;;)
		(void)!renameat2(AT_FDCWD, argv[1], AT_FDCWD, link, RENAME_EXCHANGE);
}
