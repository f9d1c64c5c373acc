/* The plan's part in the network: whether there is one, how connections come to the broker, and
 * what of it shows in the box. Private to src/plan. */
#pragma once

#include "plan/plan.h"

/* Before the command and the layout. Nothing for a policy without network rules. */
int network_plan(struct plan *p, const struct plan_request *req, struct pale_err *err) _must_check_;
