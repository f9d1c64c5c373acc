/* The kernel's cryptography (CVE-2026-31431). */
#include "../attack.h"

#include <sys/socket.h>

ATTACK(KERNEL, "calls", .gain = "writing into the page cache of files that can only be read",
       .source = "CVE-2026-31431", .event = "call.denied", .with = "call=socket",
       .works = SOME_KERNELS, .needs = "AF_ALG")
{
	return socket(38 /* AF_ALG */, SOCK_SEQPACKET, 0);
}
