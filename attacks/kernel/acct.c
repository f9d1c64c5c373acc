/* A record of everybody's commands, in a file of its own. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "a record of everybody's commands, in a file of its own",
       .source = "acct(2)", .event = "call.denied", .with = "call=acct", .works = AS_ROOT)
{
	return reached(acct("/nowhere"), ENOENT);
}
