/* Firewall rules: the richest source of kernel holes of late. */
#include "attack.h"

#include <sys/socket.h>

ATTACK
{
	return socket(16 /* AF_NETLINK */, SOCK_RAW, 12);
}
