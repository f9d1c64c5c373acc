/* A server at the host's own address, through the box's proxy. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "names", .gain = "services of the host for its neighbours",
       .source = "server-side request forgery (CWE-918)", .works = SOME_KERNELS,
       .needs = "an open proxy", .flags = NETWORKS)
{
	return proxy_canary("CONNECT %s:%s HTTP/1.1\r\nHost: x\r\n\r\n", needed("address"),
			    needed("address_port"));
}
