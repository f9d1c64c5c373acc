/* A restart of the machine, with a wrong password. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "a restart of the machine", .source = "reboot(2)",
       .event = "call.denied", .with = "call=reboot", .works = AS_ROOT)
{
	return reached(syscall(SYS_reboot, 0, 0, 0, NULL), EINVAL);
}
