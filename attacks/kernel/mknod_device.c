/* A device node of one's own: the kernel's memory. */
#include "../attack.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

ATTACK(KERNEL, "calls", .gain = "a device of its own: the kernel's memory", .source = "mknod(2)",
       .event = "call.denied", .with = "call=mknodat", .works = AS_ROOT)
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
