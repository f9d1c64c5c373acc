/* The x32 table: the same calls by other numbers. */
#include "attack.h"

ATTACK
{
#ifdef __x86_64__
	return syscall(0x40000000 | SYS_getpid);
#else
	return NOT_HERE;
#endif
}
