/* Every frame on the wire. */
#include "attack.h"

#include <sys/socket.h>

ATTACK
{
	return socket(17 /* AF_PACKET */, SOCK_RAW, 0x0300);
}
