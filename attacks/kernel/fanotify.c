/* Notes of what others do with files. */
#include "../attack.h"

#include <fcntl.h>
#include <sys/fanotify.h>

ATTACK(KERNEL, "calls", .gain = "to be told what others do with files",
       .source = "fanotify_init(2)", .event = "call.denied", .with = "call=fanotify_init",
       .works = OUTSIDE)
{
	return fanotify_init(FAN_CLASS_NOTIF | 0x200 /* FAN_REPORT_FID */, O_RDONLY);
}
