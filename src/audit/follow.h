/* Runs as they happen. */
#pragma once

#include "audit/audit.h"

/* One event of a run (borrowed); event NULL: its log is damaged, nothing more comes of it; both
 * NULL: that is all for now. Positive to stop. */
typedef int audit_follower(void *arg, const char *id, const json_t *event);

/* The last events of a run, and with `on` what follows, to its end. id NULL: of every live run, and
 * all of those that start meanwhile, until fn stops it. 0, what fn said, or a negative code. */
int audit_follow(const char *id, bool on, uint64_t last, audit_follower *fn, void *arg,
		 struct pale_err *err) _must_check_;
