/* The same by an IPv6 address that stands for an IPv4 one. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "names",
       .gain = "a server of the host's, by an IPv6 address that stands for an IPv4 one",
       .source = "server-side request forgery (CWE-918)", .works = SOME_KERNELS,
       .needs = "an open proxy", .flags = NETWORKS)
{
	return proxy_canary("CONNECT [::ffff:127.0.0.1]:%s HTTP/1.1\r\nHost: x\r\n\r\n",
			    needed("port"));
}
