/* The machine that this virtual machine runs on. */
#include "attack.h"

#include <sys/socket.h>

ATTACK
{
	return socket(40 /* AF_VSOCK */, SOCK_STREAM, 0);
}
