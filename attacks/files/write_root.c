/* A new file in /. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "anything at the top of the host's files", .source = "hier(7)",
       .event = "file.blocked", .with = "path=/pale-attack", .works = AS_ROOT, .flags = WRITES)
{
	int fd = open("/pale-attack", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0)
		unlink("/pale-attack");
	return fd;
}
