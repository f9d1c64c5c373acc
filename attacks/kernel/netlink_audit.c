/* The kernel's own audit trail. */
#include "../attack.h"

#include <sys/socket.h>

ATTACK(KERNEL, "calls", .gain = "the kernel's own audit trail", .source = "netlink(7)",
       .event = "call.denied", .with = "call=socket", .works = SOME_KERNELS,
       .needs = "NETLINK_AUDIT")
{
	return socket(16 /* AF_NETLINK */, SOCK_RAW, 9);
}
