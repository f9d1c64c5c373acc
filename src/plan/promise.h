/* The promises of a plan, in words: what each axis holds, by which mechanism, and what a fallback
 * does not cover. Private to src/plan. */
#pragma once

#include "plan/plan.h"

int promise_make(struct plan *p, struct pale_err *err) _must_check_;
