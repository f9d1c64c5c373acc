/* A program that the kernel starts to make a key. */
#include "../attack.h"

ATTACK(KERNEL, "calls", .gain = "a program that the kernel starts to make a key",
       .source = "request_key(2)", .event = "call.denied", .with = "call=request_key",
       .works = OUTSIDE)
{
	return reached(syscall(SYS_request_key, "user", "pale-none", NULL, 0), ENOKEY);
}
