/* What a network namespace needs so that every connection in it ends in it: loopback up, an address
 * of its own on it, and routes by which each address there is counts as local. By raw rtnetlink, in
 * one message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Brings up loopback of the calling process's network namespace, with own4 and own6 (texts) as
 * further addresses; every other address becomes one of its own, reached from those. ipv6 off:
 * leaves IPv6 out. Needs CAP_NET_ADMIN in the namespace's user namespace. Allocates nothing. */
int netlink_all_local(const char *own4, const char *own6, bool ipv6,
		      struct pale_err *err) _must_check_;

/* Sends a batch of messages over a netlink socket of this protocol, and takes the answers up to
 * that with the sequence number `last`, whose message must ask for one. 0 or the first failure, a
 * negative errno; *ret_seq is then its number. Allocates nothing. */
int netlink_batch(int protocol, const void *data, size_t len, unsigned last,
		  unsigned *ret_seq) _must_check_;
