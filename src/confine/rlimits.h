/* The resource limits of the payload, from the policy.
 *
 * Planned in the supervisor; set in the child between clone and exec. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "policy/policy.h"

/* What no control group holds, so that these limits have to. */
struct rlimits_mode {
	bool memory;
	unsigned processes_extra; /* tasks above the policy's limit: Pale's own that run as the
				   * payload's uid, and more where a group refuses first, since it
				   * counts its refusals */
};

#define RLIMITS_MAX 12

struct rlimits {
	size_t n;
	struct rlimits_row {
		int resource;
		uint64_t value;
		const char *name; /* "RLIMIT_NOFILE" */
	} row[RLIMITS_MAX];
};

/* Fills in the table. PALE_E_HOST if this process's hard limits are lower than what the policy asks
 * and it may not raise them; the message has the remedy. */
int rlimits_plan(const struct policy_limits *limits, const struct rlimits_mode *mode,
		 struct rlimits *ret, struct pale_err *err) _must_check_;

/* For a privileged supervisor whose own hard limits are lower: raises the child's, which in its
 * user namespace may not do so itself. Before the child calls rlimits_apply(). */
int rlimits_raise(const struct rlimits *r, pid_t child, struct pale_err *err) _must_check_;

/* In the payload's process, after every other step but the exec. Async-signal-safe. */
int rlimits_apply(const struct rlimits *r, struct pale_err *err) _must_check_;

/* Whether RLIMIT_NPROC counts each box for itself: per user namespace since kernel 5.14; before,
 * all processes of the uid on the whole host. */
bool rlimits_nproc_per_box(void);
