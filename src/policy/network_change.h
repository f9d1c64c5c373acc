/* Rules while they are in force: each with a number that stays its own, and changes of them as a
 * whole. For a running box; where a policy is only read, its rules are enough. */
#pragma once

#include <jansson.h>

#include "policy/policy.h"

/* What a box holds: the rules in force, allowing ones first, each with its number. */
struct network_rules {
	struct policy *policy; /* holds `network`, and nothing else of interest */
	uint64_t *numbers;     /* as many as policy->network.nrules; from 1, never used again */
	uint64_t next;	       /* the number of the next rule that is added */
	uint64_t revision;     /* 1, and one more with each change */
};

/* Into a zeroed one: a copy of a policy's network part, numbered in its order. */
int network_rules_init(struct network_rules *ret, const struct policy_network *from,
		       struct pale_err *err) _must_check_;
void network_rules_done(struct network_rules *r);
#define _cleanup_rules_ _cleanup_(network_rules_done)
/* The index of the rule with this number, or -1. */
long network_rules_find(const struct network_rules *r, uint64_t number);

#define NETWORK_CHANGE_MAX 512 /* rules added and removed by one change, of each */

/* What is to be changed: filled in entry by entry, then applied at once or not at all. */
struct network_change {
	struct policy *added;	/* rules that are added, in `network` */
	struct policy *removed; /* rules are removed that one of these covers */
	char **asked;		/* their texts, for messages; NULL-terminated, or NULL */
	char **presets;		/* or that come from one of these; likewise */
	uint64_t numbers[NETWORK_CHANGE_MAX]; /* or that have one of these numbers */
	size_t nnumbers;
};

int network_change_init(struct network_change *ret, struct pale_err *err) _must_check_;
void network_change_done(struct network_change *c);
#define _cleanup_change_ _cleanup_(network_change_done)

/* Adds a rule as the command line has it (policy_add_rule(); a preset's rules are added as they are
 * now), or an array of entries as they stand in a policy. where: for messages. */
int network_change_add(struct network_change *c, bool deny, const char *text, const char *where,
		       struct pale_err *err) _must_check_;
int network_change_add_entries(struct network_change *c, bool deny, const json_t *entries,
			       const char *where, struct pale_err *err) _must_check_;
/* Removes rules, of either kind, that this one covers: the same form, but what it leaves out
 * (ports, protocol, methods, path) is any. "preset:NAME": those that come from the preset. */
int network_change_remove(struct network_change *c, const char *text, const char *where,
			  struct pale_err *err) _must_check_;
int network_change_remove_number(struct network_change *c, uint64_t number,
				 struct pale_err *err) _must_check_;

/* What a change does; arrays of texts (network_rule_text()). */
struct network_effect {
	json_t *added, *removed;
	bool widened;  /* a rule that allows was added, or one that denies removed */
	bool narrowed; /* the other way about */
};
void network_effect_done(struct network_effect *e);
#define _cleanup_effect_ _cleanup_(network_effect_done)

/* The rules after the change, into a zeroed *ret; old is left as it is. What is there already is
 * not added again, so that the effect may be nothing (and the revision is the same then).
 * PALE_E_NOTFOUND: there is nothing that is to be removed; PALE_E_POLICY: the rules do not go
 * together; on failure *ret and *ret_effect are empty. */
int network_change_apply(const struct network_change *c, const struct network_rules *old,
			 struct network_rules *ret, struct network_effect *ret_effect,
			 struct pale_err *err) _must_check_;

/* Does the one rule cover all that the other does? (Whether they allow or deny is not asked.) */
bool network_rule_covers(const struct network_rule *rule, const struct network_rule *other);
/* Do requests have to be seen for this rule: what needs a certificate of the box's own. */
bool network_rule_intercepts(const struct network_rule *r);
/* The rule at this index as an entry of a policy's `network.allow` or `network.deny`; NULL: out of
 * memory. */
json_t *network_rule_entry(const struct policy *p, size_t index);
