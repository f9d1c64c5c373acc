/* What makes the programs of a box trust the certificate authority of its egress broker, where that
 * opens TLS: a bundle in which the supervisor puts it, and variables for those that do not read the
 * system's. Private to src/plan. */
#pragma once

#include "plan/plan.h"

/* Finds the bundle; before trust_variable(). */
int trust_find(struct plan *p, struct pale_err *err) _must_check_;
/* The i-th variable, "NAME" and its value; NULL after the last one, and where nothing is opened. */
const char *trust_variable(const struct plan *p, size_t i, const char **ret_value);
/* Its steps; /etc must be made before. */
int trust_steps(struct plan *p, struct pale_err *err) _must_check_;
