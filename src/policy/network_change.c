/* Changes of rules while they are in force: see network_change.h. Runs in the supervisor; what is
 * asked for comes from the box's owner, through the supervisor's door, and is checked as a policy
 * is. Nothing is changed in place: new rules are made of the old, or none are. */
#include "policy/network_change.h"

#include <string.h>

#include "base/str.h"
#include "policy/model.h"
#include "policy/options.h"

/* ---- rules with numbers ---- */

static int number(struct network_rules *r, struct pale_err *err)
{
	size_t n = r->policy->network.nrules;

	r->numbers = calloc(n ? n : 1, sizeof(*r->numbers));
	return r->numbers ? 0 : err_nomem(err, "policy");
}

int network_rules_init(struct network_rules *ret, const struct policy_network *from,
		       struct pale_err *err)
{
	_cleanup_rules_ struct network_rules r = {.next = 1, .revision = 1};
	int e = policy_new(&r.policy, err);

	if (e < 0)
		return e;
	network_done(&r.policy->network);
	if (network_copy(&r.policy->network, from) < 0)
		return err_nomem(err, "policy");
	e = number(&r, err);
	if (e < 0)
		return e;
	for (size_t i = 0; i < r.policy->network.nrules; i++)
		r.numbers[i] = r.next++;
	*ret = r;
	r = (struct network_rules){0};
	return 0;
}

void network_rules_done(struct network_rules *r)
{
	policy_free(r->policy);
	free(r->numbers);
	*r = (struct network_rules){0};
}

long network_rules_find(const struct network_rules *r, uint64_t wanted)
{
	for (size_t i = 0; i < r->policy->network.nrules; i++)
		if (r->numbers[i] == wanted)
			return (long)i;
	return -1;
}

/* ---- what covers what ---- */

bool network_rule_intercepts(const struct network_rule *r)
{
	return !r->deny && (r->protocols & NETWORK_TLS) && (r->intercept || r->methods || r->paths);
}

static bool covers_cidr(const struct network_cidr *c, const struct network_cidr *other)
{
	return c->bits <= other->bits && c->family == other->family &&
	       network_cidr_contains(c, other->family, &other->address);
}

static bool covers_host(const struct network_rule *rule, const struct network_rule *other)
{
	if (rule->host)
		return other->host && (strcmp(rule->host, other->host) == 0 ||
				       network_pattern_covers(rule->host, other->host));
	return !other->host && rule->cidr && other->cidr && covers_cidr(rule->cidr, other->cidr);
}

static bool covers_ports(const struct network_rule *rule, const struct network_rule *other)
{
	for (size_t i = 0; i < other->nports; i++) {
		bool found = false;

		for (size_t k = 0; k < rule->nports && !found; k++)
			found = rule->ports[k].first <= other->ports[i].first &&
				rule->ports[k].last >= other->ports[i].last;
		if (!found)
			return false;
	}
	return true;
}

/* No list is any. */
static bool covers_texts(char *const *texts, char *const *other)
{
	if (!texts)
		return true;
	for (; other && *other; other++) {
		bool found = false;

		for (char *const *t = texts; *t && !found; t++)
			found = strcmp(*t, *other) == 0;
		if (!found)
			return false;
	}
	return other != NULL;
}

bool network_rule_covers(const struct network_rule *rule, const struct network_rule *other)
{
	return covers_host(rule, other) && covers_ports(rule, other) &&
	       !(other->protocols & ~rule->protocols) &&
	       covers_texts(rule->methods, other->methods) &&
	       covers_texts(rule->paths, other->paths);
}

/* ---- what is asked for ---- */

int network_change_init(struct network_change *ret, struct pale_err *err)
{
	int r;

	*ret = (struct network_change){0};
	r = policy_new(&ret->added, err);
	return r < 0 ? r : policy_new(&ret->removed, err);
}

void network_change_done(struct network_change *c)
{
	policy_free(c->added);
	policy_free(c->removed);
	texts_free(c->presets);
	texts_free(c->asked);
	*c = (struct network_change){0};
}

static int check_room(size_t n, struct pale_err *err)
{
	if (n <= NETWORK_CHANGE_MAX)
		return 0;
	return err_set(err, PALE_E_POLICY, "policy", 0, "more than %d rules in one change",
		       NETWORK_CHANGE_MAX);
}

int network_change_add(struct network_change *c, bool deny, const char *text, const char *where,
		       struct pale_err *err)
{
	int r = check_room(c->added->network.nrules + 1, err);

	if (r == 0)
		r = policy_add_rule(c->added, deny, text, where, err);
	return r < 0 ? r : check_room(c->added->network.nrules, err);
}

int network_change_add_entries(struct network_change *c, bool deny, const json_t *entries,
			       const char *where, struct pale_err *err)
{
	_cleanup_free_ char *text = NULL;
	json_t *whole;
	int r = check_room(c->added->network.nrules + json_array_size(entries), err);

	if (r < 0)
		return r;
	whole = json_pack("{s:i, s:{s:O}}", "pale", 1, "network", deny ? "deny" : "allow",
			  (json_t *)(uintptr_t)entries);
	text = whole ? json_dumps(whole, JSON_COMPACT) : NULL;
	json_decref(whole);
	if (!text)
		return err_nomem(err, "policy");
	r = policy_load_memory(c->added, text, strlen(text), where, "/", true, err);
	/* A line and a column in what a program made say nothing. */
	for (size_t i = 0; r == 0 && i < c->added->network.nrules; i++) {
		char **place = &c->added->network.rules[i].where;

		free(*place);
		*place = strdup(where);
		if (!*place)
			r = err_nomem(err, "policy");
	}
	return r < 0 ? r : check_room(c->added->network.nrules, err);
}

int network_change_remove(struct network_change *c, const char *text, const char *where,
			  struct pale_err *err)
{
	struct policy_network *n = &c->removed->network;
	size_t presets = 0;
	int r;

	while (c->presets && c->presets[presets])
		presets++;
	r = check_room(n->nrules + presets + 1, err);
	if (r < 0)
		return r;
	if (str_starts(text, "preset:"))
		return texts_add(&c->presets, text + strlen("preset:")) < 0
			       ? err_nomem(err, "policy")
			       : 0;
	r = policy_add_rule(c->removed, true, text, where, err);
	if (r < 0)
		return r;
	return texts_add(&c->asked, text) < 0 ? err_nomem(err, "policy") : 0;
}

int network_change_remove_number(struct network_change *c, uint64_t wanted, struct pale_err *err)
{
	int r = check_room(c->nnumbers + 1, err);

	if (r == 0)
		c->numbers[c->nnumbers++] = wanted;
	return r;
}

/* ---- applying ---- */

void network_effect_done(struct network_effect *e)
{
	json_decref(e->added);
	json_decref(e->removed);
	*e = (struct network_effect){0};
}

static int tell(json_t *list, const struct network_rule *r)
{
	char text[NETWORK_RULE_TEXT];

	return json_array_append_new(list, json_string(network_rule_text(r, text)));
}

/* Marks what goes; each of what was asked for must find something. */
static int mark(const struct network_change *c, const struct network_rules *old, bool *gone,
		struct pale_err *err)
{
	const struct policy_network *n = &old->policy->network;

	for (size_t i = 0; i < c->nnumbers; i++) {
		long at = network_rules_find(old, c->numbers[i]);

		if (at < 0)
			return err_set(err, PALE_E_NOTFOUND, "policy", 0,
				       "there is no rule with the number %llu",
				       (unsigned long long)c->numbers[i]);
		gone[at] = true;
	}
	for (size_t k = 0; k < c->removed->network.nrules; k++) {
		bool found = false;

		for (size_t i = 0; i < n->nrules; i++)
			if (network_rule_covers(&c->removed->network.rules[k], &n->rules[i]))
				gone[i] = found = true;
		if (!found)
			return err_set(err, PALE_E_NOTFOUND, "policy", 0,
				       "no rule is covered by %s: to refuse a part of what a rule "
				       "allows, deny it",
				       QUOTED(c->asked[k]));
	}
	for (char **p = c->presets; p && *p; p++) {
		bool found = false;

		for (size_t i = 0; i < n->nrules; i++)
			if (n->rules[i].preset && strcmp(n->rules[i].preset, *p) == 0)
				gone[i] = found = true;
		if (!found)
			return err_set(err, PALE_E_NOTFOUND, "policy", 0,
				       "no rule comes from the preset %s", QUOTED(*p));
	}
	return 0;
}

/* Rules being made, each with its words: two that say the same are one. */
struct making {
	struct network_rules rules;
	char **words; /* as many as there are rules */
	size_t nwords;
};

static void making_done(struct making *m)
{
	for (size_t i = 0; i < m->nwords; i++)
		free(m->words[i]);
	free(m->words);
	network_rules_done(&m->rules);
}

static int words_of(const struct policy *p, size_t index, char **ret)
{
	bool deny = p->network.rules[index].deny;

	return policy_entry_json(p, deny ? &list_deny : &list_allow,
				 deny ? index - list_allow.count(p) : index, ret);
}

static int append(struct making *to, const struct network_rule *r, uint64_t its_number,
		  const char *words, struct pale_err *err)
{
	struct policy_network *n = &to->rules.policy->network;

	if (n->nrules >= POLICY_MAX_RULES)
		return err_set(err, PALE_E_POLICY, "policy", 0, "network: more than %d rules",
			       POLICY_MAX_RULES);
	if (policy_grow(&n->rules, n->nrules, sizeof(*n->rules)) < 0 ||
	    policy_grow(&to->rules.numbers, n->nrules, sizeof(*to->rules.numbers)) < 0 ||
	    policy_grow(&to->words, n->nrules, sizeof(*to->words)) < 0)
		return err_nomem(err, "policy");
	to->words[n->nrules] = strdup(words);
	if (!to->words[n->nrules])
		return err_nomem(err, "policy");
	to->nwords++;
	if (network_rule_copy(&n->rules[n->nrules], r) < 0)
		return err_nomem(err, "policy");
	to->rules.numbers[n->nrules++] = its_number;
	return 0;
}

static bool is_there(const struct making *m, const char *words, bool deny)
{
	const struct policy_network *n = &m->rules.policy->network;

	for (size_t i = 0; i < n->nrules; i++)
		if (n->rules[i].deny == deny && strcmp(m->words[i], words) == 0)
			return true;
	return false;
}

/* Those of old that stay, then those that are added, of one kind. */
static int keep(const struct network_rules *old, const bool *gone, bool deny, struct making *to,
		struct network_effect *effect, struct pale_err *err)
{
	const struct policy_network *n = &old->policy->network;

	for (size_t i = 0; i < n->nrules; i++) {
		_cleanup_free_ char *words = NULL;
		int r;

		if (n->rules[i].deny != deny)
			continue;
		if (gone[i]) {
			*(deny ? &effect->widened : &effect->narrowed) = true;
			r = tell(effect->removed, &n->rules[i]) < 0 ? err_nomem(err, "policy") : 0;
		} else if (words_of(old->policy, i, &words) < 0) {
			r = err_nomem(err, "policy");
		} else {
			r = append(to, &n->rules[i], old->numbers[i], words, err);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int add(const struct network_change *c, bool deny, struct making *to,
	       struct network_effect *effect, struct pale_err *err)
{
	const struct policy_network *a = &c->added->network;

	for (size_t i = 0; i < a->nrules; i++) {
		_cleanup_free_ char *words = NULL;
		int r;

		if (a->rules[i].deny != deny)
			continue;
		if (words_of(c->added, i, &words) < 0)
			return err_nomem(err, "policy");
		if (is_there(to, words, deny))
			continue;
		r = append(to, &a->rules[i], to->rules.next++, words, err);
		if (r < 0)
			return r;
		*(deny ? &effect->narrowed : &effect->widened) = true;
		if (tell(effect->added, &a->rules[i]) < 0)
			return err_nomem(err, "policy");
	}
	return 0;
}

json_t *network_rule_entry(const struct policy *p, size_t index)
{
	_cleanup_free_ char *text = NULL;

	return words_of(p, index, &text) < 0 ? NULL : json_loads(text, 0, NULL);
}

/* Everything of the old network part but its rules. */
static int start(const struct network_rules *old, struct network_rules *ret, struct pale_err *err)
{
	struct policy_network bare = old->policy->network;
	int r = policy_new(&ret->policy, err);

	if (r < 0)
		return r;
	bare.rules = NULL;
	bare.nrules = 0;
	network_done(&ret->policy->network);
	if (network_copy(&ret->policy->network, &bare) < 0)
		return err_nomem(err, "policy");
	ret->next = old->next;
	ret->revision = old->revision + 1;
	return 0;
}

int network_change_apply(const struct network_change *c, const struct network_rules *old,
			 struct network_rules *ret, struct network_effect *ret_effect,
			 struct pale_err *err)
{
	_cleanup_(making_done) struct making m = {0};
	_cleanup_effect_ struct network_effect effect = {json_array(), json_array(), false, false};
	_cleanup_free_ bool *gone = calloc(old->policy->network.nrules + 1, sizeof(*gone));
	int r;

	if (!gone || !effect.added || !effect.removed)
		return err_nomem(err, "policy");
	r = mark(c, old, gone, err);
	if (r == 0)
		r = start(old, &m.rules, err);
	/* Rules that deny come after all that allow. */
	for (int deny = 0; r == 0 && deny < 2; deny++) {
		r = keep(old, gone, deny, &m, &effect, err);
		if (r == 0)
			r = add(c, deny, &m, &effect, err);
	}
	/* Not policy_check_whole(): to take away the only host that a secret may be sent to is to
	 * allow less. */
	if (r == 0)
		r = policy_check(m.rules.policy, err);
	if (r < 0)
		return r;
	if (!effect.widened && !effect.narrowed)
		m.rules.revision = old->revision;
	*ret = m.rules;
	*ret_effect = effect;
	m.rules = (struct network_rules){0};
	effect = (struct network_effect){0};
	return 0;
}
