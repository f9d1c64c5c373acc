/* The host's interfaces. */
#include "../attack.h"

#include <net/if.h>
#include <sys/ioctl.h>

#include "dial.h"

ATTACK(NETWORK, "egress", .gain = "what the host is connected to", .source = "netdevice(7)",
       .works = SOME_KERNELS, .needs = "an interface")
{
	struct ifreq r = {0};
	int fd = socket_soon(AF_INET, SOCK_DGRAM);

	if (!*target("interface"))
		return NOT_HERE;
	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", target("interface"));
	return fd < 0 ? -1 : ioctl(fd, SIOCGIFFLAGS, &r);
}
