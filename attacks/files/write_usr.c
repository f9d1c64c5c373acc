/* A new file in /usr. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "a program for everybody on the host", .source = "hier(7)",
       .event = "file.blocked", .with = "path=/usr/pale-attack", .works = AS_ROOT, .flags = WRITES)
{
	int fd = open("/usr/pale-attack", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0)
		unlink("/usr/pale-attack");
	return fd;
}
