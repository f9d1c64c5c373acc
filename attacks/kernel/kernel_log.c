/* The kernel's log, with its addresses. */
#include "attack.h"

ATTACK
{
	return syscall(SYS_syslog, 10 /* size of the buffer */, NULL, 0);
}
