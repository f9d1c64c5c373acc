/* Another name for the machine. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "another name for the machine", .source = "sethostname(2)",
       .event = "call.denied", .with = "call=sethostname", .works = AS_ROOT, .flags = NESTING)
{
	return sethostname(needed("hostname"), strlen(needed("hostname")));
}
