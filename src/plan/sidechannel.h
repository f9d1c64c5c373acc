/* What a policy asks for against side channels, resolved against this host: speculation controls,
 * the flush of the first cache, core scheduling. */
#pragma once

#include "plan/plan.h"
#include "policy/policy.h"

/* Sets p->side. What cannot be had and may not be weaker (best_effort) is refused. Looks at the
 * host only for what is asked. */
int sidechannel_plan(struct plan *p, const struct policy *policy,
		     struct pale_err *err) _must_check_;
