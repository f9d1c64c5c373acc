/* Every other family of sockets. */
#include "../attack.h"

#include <sys/un.h>

#include "dial.h"

ATTACK(NETWORK, "sockets", .gain = "old and seldom read kernel code: CAN, Bluetooth, TIPC, ...",
       .source = "CVE-2021-43267, CVE-2022-0435", .event = "call.denied", .with = "call=socket",
       .works = OUTSIDE, .flags = QUIET)
{
	for (int family = 0; family < 46; family++)
		for (int type = 1; type <= 5; type++)
			if (family != AF_UNIX && family != AF_INET && family != AF_INET6 &&
			    family != AF_NETLINK && socket(family, type, 0) >= 0)
				return 0;
	return denied(EAFNOSUPPORT);
}
