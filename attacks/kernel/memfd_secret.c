/* Memory that nobody can look into, and that cannot be moved. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "memory that nobody can look into, and that cannot be moved",
       .source = "memfd_secret(2)", .event = "call.denied", .with = "call=memfd_secret",
       .works = SOME_KERNELS, .needs = "memory secrets")
{
	return syscall(447, 0);
}
