/* An address in the request, and another host in its header. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "names", .gain = "a server of the host's, where only the header is checked",
       .source = "server-side request forgery (CWE-918)", .works = SOME_KERNELS,
       .needs = "an open proxy", .flags = NETWORKS)
{
	return proxy_canary("GET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: example.com\r\nConnection: "
			    "close\r\n\r\n",
			    needed("port"));
}
