/* Presets of rules: see presets.c. */
#pragma once

#include "policy/policy.h"

/* The text of a preset, by its name, or by its path if it has a slash or a dot; and the file that
 * it comes from (NULL: it is part of the program). Both owned by the caller. */
int preset_text(const char *name, const char *base, char **ret, char **ret_from,
		struct pale_err *err) _must_check_;
/* For people and programs: see pale_policy_presets(). */
int preset_list(char **ret, struct pale_err *err) _must_check_;
int preset_describe(const char *name, char **ret, struct pale_err *err) _must_check_;
/* Its rules, into a new policy. */
int preset_load(struct policy *p, const char *name, const char *base,
		struct pale_err *err) _must_check_;
