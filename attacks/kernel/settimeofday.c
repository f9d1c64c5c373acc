/* Another time: certificates that are valid again. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "another time: certificates that are valid again",
       .source = "settimeofday(2)", .event = "call.denied", .with = "call=settimeofday",
       .works = AS_ROOT)
{
	return syscall(SYS_settimeofday, NULL, NULL);
}
