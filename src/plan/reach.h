/* How a box's connections come to the egress broker on this host: looked into only for a policy
 * that has network rules. */
#pragma once

#include "base/err.h"
#include "confine/nft.h"

/* The best that the kernel offers this user, tried in a network namespace of its own, or as the
 * state directory remembers it of this kernel. PALE_E_HOST: neither works; the message has the
 * remedy. Must be called by a process with a single thread. */
int reach_find(enum nft_set *ret, struct pale_err *err) _must_check_;
/* It did not prove true: try anew next time. */
void reach_forget(void);
/* Tries one, remembers nothing; an errno or 0. */
int reach_try(enum nft_set set) _must_check_;
