/* Memory that is executable wherever it is readable. */
#include "../attack.h"

#include <sys/personality.h>

ATTACK(KERNEL, "calls", .gain = "memory that is executable wherever it is readable",
       .source = "personality(2)", .event = "call.denied", .with = "call=personality",
       .works = OUTSIDE)
{
	return personality(READ_IMPLIES_EXEC);
}
