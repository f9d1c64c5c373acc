/* What would have let a run go on that did not: the rule of the policy that stood in its way, and
 * how to change it, in a sentence that a person or a model can act on. */
#pragma once

#include <jansson.h>

#include "plan/plan.h"
#include "supervise/result.h"

/* The end of what the box wrote to standard error, for those refusals of which only the program
 * hears: the kernel's answers to an open, a write, an allocation. Hostile, and only searched. */
#define HINTS_TAIL 4096
struct hints_tail {
	char data[2 * HINTS_TAIL];
	size_t len;
};

void hints_add(struct hints_tail *t, const char *data, size_t len);

/* An array of {rule, text}, empty where nothing is to be said; NULL if out of memory. For a run
 * that has ended: its limits, and unless all is well, what its end of standard error tells. */
json_t *hints_make(const struct result *r, const struct plan *plan, const struct hints_tail *t);
