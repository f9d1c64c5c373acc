/* The box's file tree: from policy entries, the command's toolchain and the system's own places to
 * ordered mount steps. Private to src/plan. */
#pragma once

#include "plan/plan.h"
#include "plan/toolchain.h"

/* Appends a step and returns it, zeroed, or NULL if out of memory. Strings are copied. */
struct step *plan_add_step(struct plan *p, enum step_type type, const char *source,
			   const char *target, const char *content);

/* Emits every step for files. toolchain may be NULL. */
int layout_make(struct plan *p, const struct plan_request *req, const struct toolchain *toolchain,
		struct pale_err *err) _must_check_;
