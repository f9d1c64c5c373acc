/* The host has one number of asynchronous requests for everybody (fs.aio-max-nr). */
#include "../attack.h"

ATTACK(KERNEL, "calls",
       .gain = "the host's one number of asynchronous requests, used up for everybody",
       .source = "io_setup(2)", .event = "call.denied", .with = "call=io_setup", .works = OUTSIDE)
{
	unsigned long context = 0;
	long r = syscall(SYS_io_setup, 1, &context);

	if (r == 0)
		syscall(SYS_io_destroy, context);
	return r;
}
