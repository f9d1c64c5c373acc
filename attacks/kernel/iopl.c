/* The machine's input and output ports. */
#include "attack.h"

#ifdef SYS_iopl
#include <sys/io.h>
#endif

ATTACK
{
#ifdef SYS_iopl
	return iopl(3);
#else
	return NOT_HERE;
#endif
}
