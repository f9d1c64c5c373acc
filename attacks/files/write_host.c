/* A new file of the caller's. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(FILES, "root", .gain = "files on the host",
       .source = "everything that was to stay in the workspace", .broken = "written",
       .works = AS_ROOT)
{
	return open(target("written"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}
