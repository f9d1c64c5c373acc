/* The kernel's cryptography (CVE-2026-31431). */
#include "attack.h"

#include <sys/socket.h>

ATTACK
{
	return socket(38 /* AF_ALG */, SOCK_SEQPACKET, 0);
}
