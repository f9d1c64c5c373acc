/* Packets of any make. */
#include "../attack.h"

#include <sys/socket.h>

ATTACK(KERNEL, "calls", .gain = "packets of any make", .source = "raw(7)", .event = "call.denied",
       .with = "call=socket", .works = AS_ROOT)
{
	return socket(AF_INET, SOCK_RAW, 1 /* ICMP */);
}
