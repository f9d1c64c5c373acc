/* A host that no rule names, through the box's proxy. */
#include "../attack.h"

#include "proxy.h"

ATTACK(NETWORK, "egress", .gain = "any host, where only some are allowed",
       .source = "a relay past the list of hosts", .event = "network.blocked",
       .with = "host=unlisted.example.org", .works = SOME_KERNELS, .needs = "an open proxy",
       .flags = NETWORKS)
{
	return proxy_lets_out(
		"CONNECT unlisted.example.org:443 HTTP/1.1\r\nHost: unlisted.example.org\r\n\r\n");
}
