/* The same by a name with a NUL before one that may be allowed. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "names",
       .gain = "a server of the host's, by a name that two readers read differently",
       .source = "a NUL in a host name", .works = SOME_KERNELS, .needs = "an open proxy",
       .flags = NETWORKS)
{
	return socks_canary("\x05\x01\x00\x03\x16localhost\0.example.com", 27);
}
