/* Every frame on the wire. */
#include "../attack.h"

#include <sys/socket.h>

ATTACK(KERNEL, "calls", .gain = "every frame on the wire, and a rich source of kernel holes",
       .source = "CVE-2020-14386", .event = "call.denied", .with = "call=socket", .works = AS_ROOT)
{
	return socket(17 /* AF_PACKET */, SOCK_RAW, 0x0300);
}
