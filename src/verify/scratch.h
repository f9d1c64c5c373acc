/* A directory of verify's own, for the host's side of the attacks and for the logs of its runs. */
#pragma once

#include "base/err.h"
#include "policy/policy.h"

struct scratch {
	char path[512]; /* empty: there is none */
	int dir;	/* the same, open */
	char *state;	/* what PALE_STATE_DIR was; or NULL */
};

/* Where nothing of the policy's files is, so that no box sees it by right. PALE_STATE_DIR is in it
 * until scratch_done(). */
int scratch_make(struct scratch *ret, const struct policy *policy,
		 struct pale_err *err) _must_check_;
/* A directory in it, with exactly this mode. */
int scratch_dir(const struct scratch *s, const char *name, mode_t mode,
		struct pale_err *err) _must_check_;
void scratch_done(struct scratch *s);
#define _cleanup_scratch_ _cleanup_(scratch_done)
