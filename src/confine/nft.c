/* Loading the ready-made rules: see nft.h. In the network helper of a box's set-up child, and in
 * the probes of the plan and the doctor. No hostile input. */
#include "confine/nft.h"

#include <errno.h>
#include <linux/netlink.h>

#include "confine/netlink.h"

#define STAGE "confine"

static const struct {
	const char *name, *modules;
} sets[NFT_SETS] = {
	[NFT_TPROXY] = {"nftables TPROXY", "nf_tables and nft_tproxy"},
	[NFT_REDIRECT] = {"nftables REDIRECT", "nf_tables, nft_chain_nat and nft_redir"},
};

const char *nft_set_name(enum nft_set set)
{
	return sets[set].name;
}

const char *nft_set_modules(enum nft_set set)
{
	return sets[set].modules;
}

int nft_load(enum nft_set set, struct pale_err *err)
{
	const struct nft_batch *b = &nft_batches[set];
	unsigned seq;
	int r = netlink_batch(NETLINK_NETFILTER, b->data, b->len, b->last, &seq);

	if (r == 0)
		return 0;
	err_set(err, PALE_E_HOST, STAGE, -r, "cannot load the rules of %s", sets[set].name);
	err_add(err,
		"; the kernel needs the modules %s (modprobe them, or list them in "
		"/etc/modules-load.d/pale.conf)",
		sets[set].modules);
	return -PALE_E_HOST;
}
