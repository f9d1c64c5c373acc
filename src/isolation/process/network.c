/* The box's own network namespace: loopback, and the socket that answers name lookups.
 *
 * Runs in the set-up child with CAP_NET_ADMIN and CAP_NET_BIND_SERVICE there. */
#include "process.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define STAGE "isolation"

int network_loopback_up(struct pale_err *err)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot bring up loopback");
	return 0;
}

int network_dns_socket(int *ret_fd, struct pale_err *err)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(53),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open the box's DNS port");
	*ret_fd = take_fd(&fd);
	return 0;
}
