/* The host's passwords. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "hashes of the host's passwords", .source = "shadow(5)",
       .works = AS_ROOT)
{
	return open("/etc/shadow", O_RDONLY | O_CLOEXEC);
}
