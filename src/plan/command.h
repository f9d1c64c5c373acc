/* What runs: from the caller's request to a command, its environment and its toolchain. Private to
 * src/plan. */
#pragma once

#include "plan/plan.h"
#include "plan/toolchain.h"

/* Fills p->command and *ret, which is to be released with toolchain_done() also after a failure.
 * The plan's user and home are set already. */
int command_make(struct plan *p, const struct plan_request *req, struct toolchain *ret,
		 struct pale_err *err) _must_check_;
