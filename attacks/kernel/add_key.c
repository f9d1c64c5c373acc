/* A key of one's own in the kernel. */
#include "../attack.h"

ATTACK(KERNEL, "calls",
       .gain = "kernel code for keys, which has been a source of holes, and storage that outlives "
	       "the box",
       .source = "CVE-2016-0728", .event = "call.denied", .with = "call=add_key", .works = OUTSIDE)
{
	long key = syscall(SYS_add_key, "user", "pale-attack", "x", 1, -2 /* process keyring */);

	/* Full, but open. */
	return reached(key, EDQUOT);
}
