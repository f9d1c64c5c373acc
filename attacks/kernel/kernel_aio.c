/* The host has one number of asynchronous requests for everybody (fs.aio-max-nr). */
#include "attack.h"

ATTACK
{
	unsigned long context = 0;
	long r = syscall(SYS_io_setup, 1, &context);

	if (r == 0)
		syscall(SYS_io_destroy, context);
	return r;
}
