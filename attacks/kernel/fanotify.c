/* Notes of what others do with files. */
#include "attack.h"

#include <fcntl.h>
#include <sys/fanotify.h>

ATTACK
{
	return fanotify_init(FAN_CLASS_NOTIF | 0x200 /* FAN_REPORT_FID */, O_RDONLY);
}
