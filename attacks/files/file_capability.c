/* A program with a capability of its own. */
#include "../attack.h"

#include <sys/xattr.h>

ATTACK(FILES, "root", .gain = "a program that gives capabilities to whoever runs it",
       .source = "capabilities(7)", .works = AS_ROOT)
{
	char path[] = "/tmp/attack-XXXXXX";
	int fd = mkstemp(path);
	struct {
		uint32_t magic, low[2], high[2];
	} capability = {0x02000000 | 1, {1 << 21, 0}, {0, 0}};
	long r = setxattr(path, "security.capability", &capability, sizeof(capability), 0);
	int error = errno;

	close(fd);
	unlink(path);
	errno = error;
	return r;
}
