/* The rules by which every TCP connection of a box, whatever its destination, comes to the egress
 * broker: ready-made netlink batches, generated at build time by libnftnl (nft_gen.c).
 *
 * They are convenience, not the boundary: the namespace has no way out but the broker's
 * descriptors, so that a box without the rules (or one that could change them) reaches nothing. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* Where the connections are taken: a listener on loopback of each family. */
#define NFT_PORT     61053
#define NFT_OWN4     "10.0.2.100"  /* the box's own addresses: what is for them stays */
#define NFT_OWN6     "fd00:2::100" /* as it is */
#define NFT_DNS_PORT 53		   /* of whatever address: likewise */

enum nft_set {
	NFT_TPROXY,   /* the listener gets the connection with its destination as its own name */
	NFT_REDIRECT, /* the destination is rewritten; SO_ORIGINAL_DST tells it */
	NFT_SETS,
};

struct nft_batch {
	const unsigned char *data;
	size_t len;
	unsigned last; /* the sequence number that is acknowledged */
};
extern const struct nft_batch nft_batches[NFT_SETS];

/* Loads one into the network namespace of the calling process, which must have CAP_NET_ADMIN there.
 * PALE_E_HOST: the kernel cannot; the message has the remedy. Allocates nothing. */
int nft_load(enum nft_set set, struct pale_err *err) _must_check_;

/* "nftables TPROXY", "nftables REDIRECT" */
const char *nft_set_name(enum nft_set set);
/* The modules that it needs, for messages. */
const char *nft_set_modules(enum nft_set set);
