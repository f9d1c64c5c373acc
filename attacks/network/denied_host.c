/* A host that a rule denies. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "deny", .gain = "a host that is refused by name",
       .source = "deny rules that one platform does not enforce", .works = SOME_KERNELS,
       .needs = "an open proxy", .flags = NETWORKS)
{
	if (!*target("denied"))
		return NOT_HERE;
	return proxy_lets_out("CONNECT %s:443 HTTP/1.1\r\nHost: %s\r\n\r\n", target("denied"),
			      target("denied"));
}
