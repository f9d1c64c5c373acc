/* Where other processes' memory lies. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "where other processes' memory lies", .source = "move_pages(2)",
       .event = "call.denied", .with = "call=move_pages", .works = OUTSIDE)
{
	return syscall(SYS_move_pages, getppid(), 0ul, NULL, NULL, NULL, 0);
}
