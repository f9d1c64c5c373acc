/* Another domain for the machine. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "another domain for the machine", .source = "setdomainname(2)",
       .event = "call.denied", .with = "call=setdomainname", .works = AS_ROOT, .flags = NESTING)
{
	return setdomainname("(none)", 6);
}
