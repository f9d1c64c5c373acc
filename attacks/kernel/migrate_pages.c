/* The memory of another process, moved about. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "the memory of another process, moved about",
       .source = "migrate_pages(2)", .event = "call.denied", .with = "call=migrate_pages",
       .works = SOME_KERNELS, .needs = "NUMA")
{
	return syscall(SYS_migrate_pages, 0, 0, NULL, NULL);
}
