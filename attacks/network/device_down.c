/* The only interface of a box, down or with another address: what then listens where? */
#include "../attack.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

ATTACK(NETWORK, "egress", .gain = "the interface that leads to the broker",
       .source = "netdevice(7)", .works = AS_ROOT)
{
	struct ifreq r = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		return -1;
	/* As it is already: changes nothing where it works. */
	return ioctl(fd, SIOCSIFFLAGS, &r);
}
