/* AF_VSOCK with garbage in the upper half of the argument. */
#include "../attack.h"

#include <sys/socket.h>

ATTACK(KERNEL, "calls",
       .gain = "a socket of a refused family, by an argument with garbage in its upper half",
       .source = "CVE-2019-10063", .event = "call.denied", .with = "call=socket",
       .works = SOME_KERNELS, .needs = "AF_VSOCK")
{
	return syscall(SYS_socket, 0xffffffff00000000ul | 40 /* AF_VSOCK */, SOCK_STREAM, 0);
}
