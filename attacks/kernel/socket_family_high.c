/* AF_VSOCK with garbage in the upper half of the argument. */
#include "attack.h"

#include <sys/socket.h>

ATTACK
{
	return syscall(SYS_socket, 0xffffffff00000000ul | 40 /* AF_VSOCK */, SOCK_STREAM, 0);
}
