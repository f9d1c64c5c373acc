/* Caps on bytes: of the box and of each rule, a second and of the whole run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/network.h"

struct caps;

int caps_new(const struct policy_network *n, struct caps **ret) _must_check_;
void caps_free(struct caps *c);
/* New rules: what a rule that stays as it was has used up stays used up. Both must be alive. On
 * failure nothing has changed. */
int caps_rules(struct caps *c, const struct policy_network *before,
	       const struct policy_network *now) _must_check_;

/* rule: an index, or -1: only the box's caps. 0, or -EDQUOT: a cap on all bytes is reached. */
int caps_account(struct caps *c, int rule, uint64_t bytes) _must_check_;
/* Is a cap on all bytes reached already? Then nothing more is begun. */
bool caps_reached(const struct caps *c, int rule);
/* For how long nothing should be moved. */
uint64_t caps_pause_us(const struct caps *c, int rule);
/* Which cap is reached, in words; static. */
const char *caps_quota_detail(const struct caps *c, int rule);
