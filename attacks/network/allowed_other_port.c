/* Another port of a host that a rule allows. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "allow", .gain = "other services of a host of which one is allowed",
       .source = "rules that name hosts only", .works = SOME_KERNELS, .needs = "an open proxy",
       .flags = NETWORKS)
{
	if (!*target("allowed"))
		return NOT_HERE;
	return proxy_lets_out("CONNECT %s:1 HTTP/1.1\r\nHost: %s\r\n\r\n", target("allowed"),
			      target("allowed"));
}
