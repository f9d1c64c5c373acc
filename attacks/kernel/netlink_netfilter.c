/* Firewall rules: the richest source of kernel holes of late. */
#include "../attack.h"

#include <sys/socket.h>

ATTACK(KERNEL, "calls", .gain = "firewall rules: of late the richest source of kernel holes",
       .source = "CVE-2024-1086", .event = "call.denied", .with = "call=socket", .works = OUTSIDE)
{
	return socket(16 /* AF_NETLINK */, SOCK_RAW, 12);
}
