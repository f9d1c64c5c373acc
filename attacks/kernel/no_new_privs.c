/* A program whose file gives privileges. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/prctl.h>

ATTACK(KERNEL, "privileges", .gain = "root, by any setuid program of the host's with a hole",
       .source = "CVE-2021-4034", .works = OUTSIDE)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 0 : denied(EPERM);
}
