/* The kernel's log, with its addresses. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "the kernel's log, with its addresses", .source = "syslog(2)",
       .event = "call.denied", .with = "call=syslog", .works = AS_ROOT)
{
	return syscall(SYS_syslog, 10 /* size of the buffer */, NULL, 0);
}
