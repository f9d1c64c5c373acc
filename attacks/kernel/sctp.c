/* SCTP, which loads a module. */
#include "attack.h"

#include <sys/socket.h>

ATTACK
{
	return socket(AF_INET, SOCK_STREAM, 132);
}
