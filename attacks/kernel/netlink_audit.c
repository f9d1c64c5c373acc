/* The kernel's own audit trail. */
#include "attack.h"

#include <sys/socket.h>

ATTACK
{
	return socket(16 /* AF_NETLINK */, SOCK_RAW, 9);
}
