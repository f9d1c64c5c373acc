/* The machine that this virtual machine runs on. */
#include "../attack.h"

#include <sys/socket.h>

ATTACK(KERNEL, "calls", .gain = "the machine that this virtual machine runs on",
       .source = "vsock(7)", .event = "call.denied", .with = "call=socket", .works = SOME_KERNELS,
       .needs = "AF_VSOCK")
{
	return socket(40 /* AF_VSOCK */, SOCK_STREAM, 0);
}
