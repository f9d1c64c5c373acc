/* What an entry of `files` shows of the host. */
#pragma once

#include <sys/stat.h>

#include "base/err.h"
#include "policy/policy.h"

/* Where the entry's `from` leads, canonical and to be freed by the caller, and what is there.
 * PALE_E_POLICY: nothing, or nothing that can be mounted; err says it with the entry's place. */
int source_find(const struct policy_file *f, char **ret_real, struct stat *ret,
		struct pale_err *err) _must_check_;
