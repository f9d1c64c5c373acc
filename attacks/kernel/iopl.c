/* The machine's input and output ports. */
#include "../attack.h"

#ifdef SYS_iopl
#include <sys/io.h>
#endif

ATTACK(KERNEL, "calls", .gain = "the machine's input and output ports", .source = "iopl(2)",
       .event = "call.denied", .with = "call=iopl", .works = SOME_KERNELS, .needs = "ports")
{
#ifdef SYS_iopl
	return iopl(3);
#else
	return NOT_HERE;
#endif
}
