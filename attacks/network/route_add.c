/* A route of the own making: packets for one address are to go elsewhere than to the broker. */
#include "../attack.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

ATTACK(NETWORK, "egress", .gain = "a way for packets past the broker", .source = "rtnetlink(7)",
       .works = AS_ROOT)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg r;
		struct rtattr a;
		struct in_addr to;
		struct rtattr o;
		int device;
	} q = {
		.h = {.nlmsg_len = sizeof(q),
		      .nlmsg_type = RTM_NEWROUTE,
		      .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
		.r = {.rtm_family = AF_INET,
		      .rtm_dst_len = 32,
		      .rtm_table = RT_TABLE_MAIN,
		      .rtm_protocol = RTPROT_BOOT,
		      .rtm_scope = RT_SCOPE_LINK,
		      .rtm_type = RTN_UNICAST},
		.a = {.rta_len = RTA_LENGTH(4), .rta_type = RTA_DST},
		.o = {.rta_len = RTA_LENGTH(4), .rta_type = RTA_OIF},
		.device = 1,
	};
	char answer[4096];
	struct nlmsghdr *h = (struct nlmsghdr *)answer;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	inet_pton(AF_INET, "93.184.216.17", &q.to);
	if (fd < 0 || send(fd, &q, sizeof(q), 0) < 0 || recv(fd, answer, sizeof(answer), 0) < 0)
		return -1;
	if (h->nlmsg_type == NLMSG_ERROR && ((struct nlmsgerr *)NLMSG_DATA(h))->error) {
		errno = -((struct nlmsgerr *)NLMSG_DATA(h))->error;
		return -1;
	}
	/* Not to stay where it works. */
	q.h.nlmsg_type = RTM_DELROUTE;
	q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	return send(fd, &q, sizeof(q), 0) < 0 ? -1 : 0;
}
