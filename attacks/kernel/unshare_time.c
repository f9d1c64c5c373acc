/* A time namespace, whose flag lies where clone() has its exit signal. */
#include "../attack.h"

#include <sched.h>

ATTACK(KERNEL, "calls",
       .gain = "a time namespace, whose flag lies where clone() has its exit signal",
       .source = "time_namespaces(7)", .event = "call.denied", .with = "call=unshare",
       .works = AS_ROOT, .flags = NESTING)
{
	return unshare(0x80 /* CLONE_NEWTIME */);
}
