/* SCTP, which loads a module. */
#include "../attack.h"

#include <sys/socket.h>

ATTACK(KERNEL, "calls", .gain = "a protocol that loads a module nobody looks after",
       .source = "CVE-2021-3772", .event = "call.denied", .with = "call=socket",
       .works = SOME_KERNELS, .needs = "SCTP")
{
	return socket(AF_INET, SOCK_STREAM, 132);
}
