/* Writing reviewed changes to the host. */
#pragma once

#include "files/review.h"

/* Applies what items (from review_changes() with the same options) mark VERDICT_APPLY, and corrects
 * the marks by what really happened. changes_fd is changes/<n>/, whose lock the caller holds. Each
 * file is written beside its place, brought to disk, and put there by one rename; what it replaces
 * is looked at once more after the exchange, and put back if it is not what was reviewed. What was
 * cut short by a kill is cleaned up by the next call, from the journal in changes/<n>/. 0 also if
 * single entries failed; negative if all had to stop (the disk is full). */
int changes_apply(const struct manifest *m, int changes_fd, int root_fd,
		  const struct review_options *o, struct review_item *items,
		  struct pale_err *err) _must_check_;

/* Takes the lock of changes/<n>/ for as long as fd is open: PALE_E_CONFLICT if another has it. */
int changes_lock(int changes_fd, struct pale_err *err) _must_check_;

/* Removes what a killed changes_apply() left on the host, as its journal says. */
int changes_clean(const struct manifest *m, int changes_fd, int root_fd,
		  struct pale_err *err) _must_check_;
