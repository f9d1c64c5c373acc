/* A new file in /etc. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "a setting of the host's", .source = "hier(7)",
       .event = "file.blocked", .with = "path=/etc/pale-attack", .works = AS_ROOT, .flags = WRITES)
{
	int fd = open("/etc/pale-attack", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0)
		unlink("/etc/pale-attack");
	return fd;
}
