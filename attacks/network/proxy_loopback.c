/* A server on the host's loopback, through the box's proxy. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "names",
       .gain = "a server of the host's, which the broker can reach and the box cannot",
       .source = "server-side request forgery (CWE-918)", .works = SOME_KERNELS,
       .needs = "an open proxy", .flags = NETWORKS)
{
	return proxy_canary("CONNECT 127.0.0.1:%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
			    needed("port"));
}
