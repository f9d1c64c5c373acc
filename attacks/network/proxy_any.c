/* The same by the address 0.0.0.0. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "names",
       .gain = "a server of the host's, by an address that no list of private ones has",
       .source = "server-side request forgery (CWE-918)", .works = SOME_KERNELS,
       .needs = "an open proxy", .flags = NETWORKS)
{
	return proxy_canary("CONNECT 0.0.0.0:%s HTTP/1.1\r\nHost: x\r\n\r\n", needed("port"));
}
