/* The policies of verify's boxes: the given one, with what an attack needs to be one. */
#pragma once

#include <pale.h>

#include "verify/corpus.h"

/* Where the box has what is put up for it (attacks/host.c). */
#define VERIFY_READ    "/verify/read"
#define VERIFY_OVERLAY "/verify/overlay"
#define VERIFY_COLLECT "/verify/collect"

/* The given policy, so that nothing of the caller's is touched: what is collected, published and
 * secret is replaced by things below dir. With `files`: and with entries of files of its own, on
 * which the promises about these are tried. Limits are high enough for attacks on other things. */
int verify_policy(const struct pale_policy *given, const char *program, const char *dir, bool files,
		  struct pale_policy **ret, struct pale_err *err) _must_check_;
/* And for an attack on caps of the network: as many connections at a time as it opens in a moment.
 */
uint64_t verify_connections(struct attempt *a, struct pale_policy *policy);
/* And for an attack on a limit: the limit is the given policy's, or, if that cannot be exceeded in
 * a few seconds, or on a busy machine, lower; a->lowered then says so. quota: a share of a
 * processor can be kept, by a control group. ret_max: the limit, in its smallest unit. */
int verify_limit(const struct pale_policy *given, struct attempt *a, bool quota,
		 struct pale_policy *policy, uint64_t *ret_max, struct pale_err *err) _must_check_;
