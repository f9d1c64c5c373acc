/* What a box sees of the machine's size in /proc: written by the supervisor into files that are
 * mounted there. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "isolation/isolation.h"
#include "plan/plan.h"

struct views {
	struct buf text[VIEW_COUNT];
};

/* Reads the host's /proc and cuts them down: while the box is being built, because the kernel takes
 * its time to write them. views_done() in either case. */
int views_read(const struct plan *plan, struct views *ret, struct pale_err *err) _must_check_;
/* Fills all of them in; before the gate opens. */
int views_write(const struct views *v, const struct box *box, struct pale_err *err) _must_check_;
void views_done(struct views *v);
