/* Build-time program: writes nft_batches.c, the rules of nft.h as the netlink messages that load
 * them. By libnftnl and libmnl, so that neither is in the program. No hostile input.
 *
 * As text, for IPv4 (IPv6 likewise, with ::1 and its own address):
 *
 *   table ip pale {                                  table ip pale {
 *     chain in {                                       chain out {
 *       type filter hook prerouting priority mangle      type nat hook output priority -100
 *       ip daddr 127.0.0.0/8 accept                      ip daddr 127.0.0.0/8 accept
 *       ip daddr 10.0.2.100 accept                       ip daddr 10.0.2.100 accept
 *       tcp dport 53 accept                              tcp dport 53 accept
 *       meta l4proto tcp tproxy to                       meta l4proto tcp redirect to :61053
 *         127.0.0.1:61053 accept                       }
 *     }                                              }
 *   }
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "base/cleanup.h"
#include "confine/nft.h"

#define TABLE		"pale"
#define PRIORITY_MANGLE (-150)
#define PRIORITY_DSTNAT (-100)

static char buffer[16384];

/* The library allocates; a build that is out of memory fails. */
#define CHECK(p)                           \
	do {                               \
		if (!(p)) {                \
			perror("nft_gen"); \
			_exit(1);          \
		}                          \
	} while (0)

static struct nftnl_expr *add(struct nftnl_rule *rule, const char *name)
{
	struct nftnl_expr *e = nftnl_expr_alloc(name);

	CHECK(e);
	nftnl_rule_add_expr(rule, e);
	return e;
}

static void add_payload(struct nftnl_rule *rule, uint32_t base, uint32_t offset, uint32_t len)
{
	struct nftnl_expr *e = add(rule, "payload");

	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, len);
}

static void add_equals(struct nftnl_rule *rule, const void *data, uint32_t len)
{
	struct nftnl_expr *e = add(rule, "cmp");

	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
	nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
	nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, data, len);
}

static void add_is_tcp(struct nftnl_rule *rule)
{
	struct nftnl_expr *e = add(rule, "meta");
	uint8_t tcp = IPPROTO_TCP;

	nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, NFT_META_L4PROTO);
	nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
	add_equals(rule, &tcp, sizeof(tcp));
}

static void add_accept(struct nftnl_rule *rule)
{
	struct nftnl_expr *e = add(rule, "immediate");

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT);
}

static void add_number(struct nftnl_rule *rule, uint32_t reg, const void *data, uint32_t len)
{
	struct nftnl_expr *e = add(rule, "immediate");

	nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, reg);
	nftnl_expr_set(e, NFTNL_EXPR_IMM_DATA, data, len);
}

struct output {
	struct mnl_nlmsg_batch *batch;
	uint32_t seq;
	uint32_t family; /* NFPROTO_IPV4, NFPROTO_IPV6 */
	const char *chain;
};

static struct nlmsghdr *begin(struct output *o, uint16_t type, uint16_t flags)
{
	return nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(o->batch), type, (uint16_t)o->family,
				     flags, ++o->seq);
}

static struct nftnl_rule *rule_new(const struct output *o)
{
	struct nftnl_rule *rule = nftnl_rule_alloc();

	CHECK(rule);
	nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, TABLE);
	nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, o->chain);
	nftnl_rule_set_u32(rule, NFTNL_RULE_FAMILY, o->family);
	return rule;
}

static void rule_put(struct output *o, struct nftnl_rule *rule, uint16_t flags)
{
	struct nlmsghdr *h =
		begin(o, NFT_MSG_NEWRULE, (uint16_t)(NLM_F_CREATE | NLM_F_APPEND | flags));

	nftnl_rule_nlmsg_build_payload(h, rule);
	nftnl_rule_free(rule);
	CHECK(mnl_nlmsg_batch_next(o->batch));
}

/* Destination addresses that are the box's own; bits: of the address, from its start. */
static void accept_address(struct output *o, const char *text, unsigned bytes)
{
	struct nftnl_rule *rule = rule_new(o);
	bool v4 = o->family == NFPROTO_IPV4;
	unsigned char address[16];

	CHECK(inet_pton(v4 ? AF_INET : AF_INET6, text, address) == 1);
	add_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, v4 ? 16 : 24, bytes);
	add_equals(rule, address, bytes);
	add_accept(rule);
	rule_put(o, rule, 0);
}

static void accept_dns(struct output *o)
{
	struct nftnl_rule *rule = rule_new(o);
	uint16_t port = htons(NFT_DNS_PORT);

	add_is_tcp(rule);
	add_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
	add_equals(rule, &port, sizeof(port));
	add_accept(rule);
	rule_put(o, rule, 0);
}

static void take_tcp(struct output *o, enum nft_set set, bool is_last)
{
	struct nftnl_rule *rule = rule_new(o);
	bool v4 = o->family == NFPROTO_IPV4;
	unsigned char loopback[16];
	uint16_t port = htons(NFT_PORT);
	struct nftnl_expr *e;

	add_is_tcp(rule);
	if (set == NFT_TPROXY) {
		CHECK(inet_pton(v4 ? AF_INET : AF_INET6, v4 ? "127.0.0.1" : "::1", loopback) == 1);
		add_number(rule, NFT_REG_1, loopback, v4 ? 4 : 16);
		add_number(rule, NFT_REG_2, &port, sizeof(port));
		e = add(rule, "tproxy");
		nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_FAMILY, o->family);
		nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_ADDR, NFT_REG_1);
		nftnl_expr_set_u32(e, NFTNL_EXPR_TPROXY_REG_PORT, NFT_REG_2);
		add_accept(rule);
	} else {
		add_number(rule, NFT_REG_1, &port, sizeof(port));
		e = add(rule, "redir");
		nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_REG_PROTO_MIN, NFT_REG_1);
		/* What nft sets too where a port is given: NF_NAT_RANGE_PROTO_SPECIFIED. */
		nftnl_expr_set_u32(e, NFTNL_EXPR_REDIR_FLAGS, 2);
	}
	rule_put(o, rule, is_last ? NLM_F_ACK : 0);
}

static void put_family(struct output *o, enum nft_set set, uint32_t family, bool is_last)
{
	struct nftnl_table *table = nftnl_table_alloc();
	struct nftnl_chain *chain = nftnl_chain_alloc();
	bool v4 = family == NFPROTO_IPV4;

	CHECK(table && chain);
	o->family = family;
	o->chain = set == NFT_TPROXY ? "in" : "out";
	nftnl_table_set_str(table, NFTNL_TABLE_NAME, TABLE);
	nftnl_table_nlmsg_build_payload(begin(o, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL),
					table);
	nftnl_table_free(table);
	CHECK(mnl_nlmsg_batch_next(o->batch));

	nftnl_chain_set_str(chain, NFTNL_CHAIN_TABLE, TABLE);
	nftnl_chain_set_str(chain, NFTNL_CHAIN_NAME, o->chain);
	nftnl_chain_set_str(chain, NFTNL_CHAIN_TYPE, set == NFT_TPROXY ? "filter" : "nat");
	nftnl_chain_set_u32(chain, NFTNL_CHAIN_HOOKNUM,
			    set == NFT_TPROXY ? NF_INET_PRE_ROUTING : NF_INET_LOCAL_OUT);
	nftnl_chain_set_s32(chain, NFTNL_CHAIN_PRIO,
			    set == NFT_TPROXY ? PRIORITY_MANGLE : PRIORITY_DSTNAT);
	nftnl_chain_set_u32(chain, NFTNL_CHAIN_POLICY, NF_ACCEPT);
	nftnl_chain_nlmsg_build_payload(begin(o, NFT_MSG_NEWCHAIN, NLM_F_CREATE), chain);
	nftnl_chain_free(chain);
	CHECK(mnl_nlmsg_batch_next(o->batch));

	/* 127.0.0.0/8 is one byte of the address, so that no mask is needed. */
	accept_address(o, v4 ? "127.0.0.1" : "::1", v4 ? 1 : 16);
	accept_address(o, v4 ? NFT_OWN4 : NFT_OWN6, v4 ? 4 : 16);
	accept_dns(o);
	take_tcp(o, set, is_last);
}

static unsigned write_set(FILE *f, enum nft_set set)
{
	struct output o = {.batch = mnl_nlmsg_batch_start(buffer, sizeof(buffer) / 2)};
	const unsigned char *data = (const unsigned char *)buffer;
	unsigned last;
	size_t len;

	CHECK(o.batch);
	memset(buffer, 0, sizeof(buffer));
	nftnl_batch_begin(mnl_nlmsg_batch_current(o.batch), ++o.seq);
	CHECK(mnl_nlmsg_batch_next(o.batch));
	put_family(&o, set, NFPROTO_IPV4, false);
	put_family(&o, set, NFPROTO_IPV6, true);
	last = o.seq;
	nftnl_batch_end(mnl_nlmsg_batch_current(o.batch), ++o.seq);
	CHECK(mnl_nlmsg_batch_next(o.batch));

	len = mnl_nlmsg_batch_size(o.batch);
	fprintf(f, "static const unsigned char set%d[%zu] = {", (int)set, len);
	for (size_t i = 0; i < len; i++)
		fprintf(f, "%s%u,", i % 24 ? "" : "\n\t", data[i]);
	fprintf(f, "\n};\n");
	mnl_nlmsg_batch_stop(o.batch);
	return last;
}

int main(int argc, char **argv)
{
	_cleanup_file_ FILE *f = NULL;
	unsigned last[NFT_SETS];

	if (argc != 2 || !(f = fopen(argv[1], "we"))) {
		fprintf(stderr, "usage: nft-gen FILE\n");
		return 2;
	}
	fprintf(f,
		"/* Generated by nft_gen.c. */\n#include \"confine/nft.h\"\n\n"
		"#if __BYTE_ORDER__ != __ORDER_%s_ENDIAN__\n"
		"#error \"generated for another byte order\"\n#endif\n",
		htons(1) == 1 ? "BIG" : "LITTLE");
	for (int i = 0; i < NFT_SETS; i++)
		last[i] = write_set(f, (enum nft_set)i);
	fprintf(f, "const struct nft_batch nft_batches[NFT_SETS] = {\n");
	for (int i = 0; i < NFT_SETS; i++)
		fprintf(f, "\t{set%d, sizeof(set%d), %u},\n", i, i, last[i]);
	fprintf(f, "};\n");
	if (ferror(f) || fflush(f)) {
		perror(argv[1]);
		return 1;
	}
	return 0;
}
