/* What a box sees of the machine's size in /proc: written by the supervisor into files that are
 * mounted there. */
#pragma once

#include <stdint.h>

#include "isolation/isolation.h"
#include "plan/plan.h"

/* Fills all of them in; before the gate opens. */
int views_write(const struct plan *plan, const struct box *box, struct pale_err *err) _must_check_;
