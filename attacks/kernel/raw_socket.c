/* Packets of any make. */
#include "attack.h"

#include <sys/socket.h>

ATTACK
{
	return socket(AF_INET, SOCK_RAW, 1 /* ICMP */);
}
