/* A device node of one's own: the kernel's memory. */
#include "attack.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

ATTACK
{
	char dir[] = "/tmp/attack-XXXXXX", path[64];
	long r;

	if (!mkdtemp(dir))
		return NOT_HERE;
	snprintf(path, sizeof(path), "%s/mem", dir);
	r = mknod(path, S_IFCHR | 0600, makedev(1, 1));
	int error = errno;

	unlink(path);
	rmdir(dir);
	errno = error;
	return r;
}
