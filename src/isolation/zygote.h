/* A zygote: an interpreter with a kernel's driver and what the policy has it import ahead, in a box
 * of its own, which forks itself into boxes. Nothing of any box ever runs in it.
 *
 * What takes an interpreter long (its start, its imports) is then done once for many boxes, and
 * what it has in memory is shared by them until one of them writes to it. What a fork cannot make
 * anew is the same in all of one zygote's boxes: where things lie in memory, and the seed of
 * Python's hashes. So it should be replaced by another now and then. */
#pragma once

#include "base/err.h"
#include "plan/plan.h"

struct zygote; /* opaque */

/* Makes one for the boxes of this plan, a session's. PALE_E_HOST: it cannot be done here, or not
 * with this kernel or where its interpreter lies. The caller becomes the parent of the zygote's
 * first process. */
int zygote_start(const struct plan *plan, struct zygote **ret, struct pale_err *err) _must_check_;
/* Polls readable when zygote_ready() would not wait, and later when it has ended and makes no more
 * forks; the boxes that it made go on. Borrowed. */
int zygote_fd(const struct zygote *z);
/* Waits until it has imported what it should; once, and before any fork. */
int zygote_ready(struct zygote *z, struct pale_err *err) _must_check_;
/* The caller makes no more boxes with it; also in a fork of the caller's, which supervises a box.
 * The zygote ends when nobody can ask it for a fork any more; its first process, when moreover the
 * last of its boxes has ended. */
void zygote_free(struct zygote *z);
static inline void zygote_freep(struct zygote **z)
{
	zygote_free(*z);
}
#define _cleanup_zygote_ _cleanup_(zygote_freep)
