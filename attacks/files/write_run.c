/* A new file in /run. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "a socket that other programs of the host come to",
       .source = "hier(7)", .event = "file.blocked", .with = "path=/run/pale-attack",
       .works = AS_ROOT, .flags = WRITES)
{
	int fd = open("/run/pale-attack", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0)
		unlink("/run/pale-attack");
	return fd;
}
