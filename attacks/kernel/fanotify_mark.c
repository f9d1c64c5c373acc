/* A word on every open of others. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "a word on every open of others", .source = "fanotify_mark(2)",
       .event = "call.denied", .with = "call=fanotify_mark", .works = OUTSIDE)
{
	return reached(syscall(SYS_fanotify_mark, -1, 1, 1, -100, "/"), EBADF);
}
