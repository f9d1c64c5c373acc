/* A server on the host's loopback, through the box's proxy, by SOCKS. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "names", .gain = "a server of the host's, by another protocol of the proxy",
       .source = "SOCKS, RFC 1928", .works = SOME_KERNELS, .needs = "an open proxy",
       .flags = NETWORKS)
{
	return socks_canary("\x05\x01\x00\x01\x7f\x00\x00\x01", 8);
}
