/* An interface of the attack's own. */
#include "../attack.h"

#include <fcntl.h>

ATTACK(NETWORK, "egress", .gain = "packets of any make", .source = "kernel.org, tuntap",
       .works = SOME_KERNELS, .needs = "tun")
{
	return open("/dev/net/tun", O_RDWR | O_CLOEXEC);
}
