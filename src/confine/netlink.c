/* Addresses and routes: see netlink.h.
 *
 * In the network helper of a box's set-up child, which shares that one's memory: nothing is
 * allocated. Reads nothing but the kernel's answers. The messages are few and fixed, so that they
 * are put together here: a library would cost more of a start than all of them take. */
#include "confine/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "base/cleanup.h"

#define STAGE	 "confine"
#define LOOPBACK 1 /* the index of lo in every namespace */

struct batch {
	char data[1024] __attribute__((aligned(4)));
	size_t len, begun;
	unsigned seq;
};

static void put(struct batch *b, const void *data, size_t len)
{
	memcpy(b->data + b->len, data, len);
	b->len += NLMSG_ALIGN(len); /* what is between is zero from the start */
}

static void begin(struct batch *b, unsigned short type, unsigned short flags, const void *header,
		  size_t len)
{
	struct nlmsghdr h = {.nlmsg_type = type,
			     .nlmsg_flags = (unsigned short)(NLM_F_REQUEST | flags),
			     .nlmsg_seq = ++b->seq};

	b->begun = b->len;
	put(b, &h, sizeof(h));
	put(b, header, len);
}

static void attribute(struct batch *b, unsigned short type, const void *data, size_t len)
{
	struct rtattr a = {.rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(len)};

	put(b, &a, sizeof(a));
	put(b, data, len);
}

static void end(struct batch *b)
{
	unsigned len = (unsigned)(b->len - b->begun);

	memcpy(b->data + b->begun, &len, sizeof(len)); /* nlmsg_len comes first */
}

static void link_up(struct batch *b)
{
	struct ifinfomsg m = {.ifi_index = LOOPBACK, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};

	begin(b, RTM_NEWLINK, 0, &m, sizeof(m));
	end(b);
}

static void address(struct batch *b, unsigned char family, const void *own, size_t len)
{
	/* Nobody else is there whose address it could be. */
	struct ifaddrmsg m = {.ifa_family = family,
			      .ifa_prefixlen = (unsigned char)(8 * len),
			      .ifa_flags = IFA_F_NODAD,
			      .ifa_index = LOOPBACK};

	begin(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &m, sizeof(m));
	attribute(b, IFA_LOCAL, own, len);
	attribute(b, IFA_ADDRESS, own, len);
	end(b);
}

static void route(struct batch *b, unsigned char family, const void *own, size_t len)
{
	struct rtmsg m = {.rtm_family = family,
			  .rtm_table = RT_TABLE_LOCAL,
			  .rtm_protocol = RTPROT_STATIC,
			  .rtm_scope = RT_SCOPE_HOST,
			  .rtm_type = RTN_LOCAL};
	unsigned loopback = LOOPBACK;

	begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &m, sizeof(m));
	attribute(b, RTA_OIF, &loopback, sizeof(loopback));
	/* Without it a connection would come from the address that it goes to. */
	attribute(b, RTA_PREFSRC, own, len);
	end(b);
}

/* 0, or the failure; 1 to go on. */
static int take_answer(const struct nlmsghdr *h, unsigned last, unsigned *ret_seq)
{
	const struct nlmsgerr *e = NLMSG_DATA(h);

	if (h->nlmsg_type != NLMSG_ERROR || h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
		return 1;
	*ret_seq = h->nlmsg_seq;
	return e->error ? e->error : h->nlmsg_seq == last ? 0 : 1;
}

int netlink_batch(int protocol, const void *data, size_t len, unsigned last, unsigned *ret_seq)
{
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	char answers[4096] __attribute__((aligned(4)));
	int on = 1;

	*ret_seq = 0;
	if (fd < 0)
		return -errno;
	/* An error need not carry the message that it is about. */
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	if (sendto(fd, data, len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) != (ssize_t)len)
		return -errno;
	for (;;) {
		ssize_t n = recv(fd, answers, sizeof(answers), 0);
		size_t left = (size_t)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		for (struct nlmsghdr *h = (struct nlmsghdr *)answers; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left)) {
			int r = take_answer(h, last, ret_seq);

			if (r <= 0)
				return r;
		}
	}
}

int netlink_all_local(const char *own4, const char *own6, bool ipv6, struct pale_err *err)
{
	static const char *const what[] = {
		"make addresses and routes", "bring up loopback",    "add its IPv4 address",
		"add its IPv4 route",	     "add its IPv6 address", "add its IPv6 route",
	};
	struct batch b = {0};
	struct in_addr a4;
	struct in6_addr a6;
	unsigned failed;
	struct nlmsghdr *last;
	int r;

	if (inet_pton(AF_INET, own4, &a4) != 1 || inet_pton(AF_INET6, own6, &a6) != 1)
		return err_set(err, PALE_E_SYSTEM, STAGE, EINVAL, "the box's own addresses");
	link_up(&b);
	address(&b, AF_INET, &a4, sizeof(a4));
	route(&b, AF_INET, &a4, sizeof(a4));
	if (ipv6) {
		address(&b, AF_INET6, &a6, sizeof(a6));
		route(&b, AF_INET6, &a6, sizeof(a6));
	}
	/* Failures are answered in any case, and success of the last one is success of all. */
	last = (struct nlmsghdr *)(b.data + b.begun);
	last->nlmsg_flags |= NLM_F_ACK;
	r = netlink_batch(NETLINK_ROUTE, b.data, b.len, b.seq, &failed);
	return r < 0 ? err_set(err, PALE_E_HOST, STAGE, -r, "cannot %s in the box's network",
			       what[failed < ARRAY_SIZE(what) ? failed : 0])
		     : 0;
}
