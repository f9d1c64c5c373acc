/* The same by a name. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "names", .gain = "a server of the host's, by a name that SOCKS carries",
       .source = "SOCKS, RFC 1928", .works = SOME_KERNELS, .needs = "an open proxy",
       .flags = NETWORKS)
{
	return socks_canary("\x05\x01\x00\x03\x09localhost", 14);
}
