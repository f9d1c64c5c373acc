/* Page faults handled by the attacker: stops the kernel where a race needs it. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "the kernel stopped just where a race needs it",
       .source = "userfaultfd(2)", .event = "call.denied", .with = "call=userfaultfd",
       .works = OUTSIDE)
{
	return syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */);
}
