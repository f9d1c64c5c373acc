/* The terminals of others. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "the terminals of others", .source = "vhangup(2)",
       .event = "call.denied", .with = "call=vhangup", .works = AS_ROOT)
{
	return vhangup();
}
