/* A user namespace: all capabilities over what is in it. */
#include "../attack.h"

#include <sched.h>

ATTACK(KERNEL, "calls", .gain = "all capabilities over what is in a namespace of its own",
       .source = "CVE-2022-0185", .event = "call.denied", .with = "call=unshare", .works = OUTSIDE,
       .flags = NESTING)
{
	return unshare(CLONE_NEWUSER);
}
