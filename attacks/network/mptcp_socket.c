/* TCP over several paths. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "sockets", .gain = "a protocol that no rule on TCP covers",
       .source = "mptcp, kernel.org", .works = SOME_KERNELS, .needs = "MPTCP", .flags = QUIET)
{
	return socket(AF_INET, SOCK_STREAM, 262);
}
