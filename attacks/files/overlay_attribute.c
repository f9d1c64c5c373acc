/* The marks by which overlayfs knows what it may show. */
#include "../attack.h"

#include <sys/xattr.h>

ATTACK(FILES, "root", .gain = "files that an overlay shows though they are hidden",
       .source = "CVE-2023-0386", .works = AS_ROOT)
{
	char path[] = "/tmp/attack-XXXXXX";
	int fd = mkstemp(path);
	long r = setxattr(path, "trusted.overlay.redirect", "/", 1, 0);
	int error = errno;

	close(fd);
	unlink(path);
	errno = error;
	return r == 0 || error == ENOTSUP ? r : denied(error);
}
