/* Asking the kernel for a route: see route.h. Runs in the broker. The addresses come from the
 * answers of name servers, which are hostile; they are passed on as they are. */
#include "egress/route.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

int route_open(void)
{
	const struct timeval wait = {.tv_sec = 1};
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	/* The kernel answers within the call that asks; the time-out is for a kernel that does
	 * not. */
	if (fd < 0 || connect(fd, (struct sockaddr *)&kernel, sizeof(kernel)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0)
		return -errno;
	return take_fd(&fd);
}

bool route_is_own(int fd, int family, const void *address)
{
	static uint32_t sequence;
	size_t len = family == AF_INET ? 4 : 16;
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
		struct rtattr attribute;
		uint8_t address[16];
	} ask = {
		.header = {.nlmsg_len =
				   (uint32_t)(NLMSG_LENGTH(sizeof(struct rtmsg)) + RTA_LENGTH(len)),
			   .nlmsg_type = RTM_GETROUTE,
			   .nlmsg_flags = NLM_F_REQUEST,
			   .nlmsg_seq = ++sequence},
		.route = {.rtm_family = (unsigned char)family,
			  .rtm_dst_len = (unsigned char)(len * 8)},
		.attribute = {.rta_len = (unsigned short)RTA_LENGTH(len), .rta_type = RTA_DST},
	};
	union {
		struct nlmsghdr header;
		char space[4096];
	} answer;

	memcpy(ask.address, address, len);
	if (send(fd, &ask, ask.header.nlmsg_len, 0) < 0)
		return true;
	for (;;) {
		ssize_t n = recv(fd, &answer, sizeof(answer), 0);

		if (n < (ssize_t)NLMSG_HDRLEN)
			return true;
		if (answer.header.nlmsg_seq != sequence)
			continue; /* a late answer to an earlier question */
		if (answer.header.nlmsg_type == NLMSG_ERROR) {
			const struct nlmsgerr *e = NLMSG_DATA(&answer.header);

			/* No route: connecting will say so. */
			return !(n >= (ssize_t)NLMSG_LENGTH(sizeof(*e)) &&
				 (e->error == -ENETUNREACH || e->error == -EHOSTUNREACH));
		}
		if (answer.header.nlmsg_type != RTM_NEWROUTE ||
		    n < (ssize_t)NLMSG_LENGTH(sizeof(struct rtmsg)))
			return true;

		const struct rtmsg *route = NLMSG_DATA(&answer.header);

		return route->rtm_type != RTN_UNICAST && route->rtm_type != RTN_UNREACHABLE &&
		       route->rtm_type != RTN_BLACKHOLE && route->rtm_type != RTN_PROHIBIT;
	}
}
