/* The new mount interface, which has calls of its own. */
#include "../attack.h"

ATTACK(KERNEL, "calls",
       .gain = "a file system of its own, by the calls that older filters do not know",
       .source = "fsopen(2); CVE-2022-0185", .event = "call.denied", .with = "call=fsopen",
       .works = AS_ROOT, .flags = NESTING)
{
	return syscall(SYS_fsopen, "tmpfs", 0);
}
