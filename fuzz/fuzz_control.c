/* Lines at a supervisor's door from hostile bytes, and changes of rules, applied to some that are
 * in force. Whatever is sent, the answer is one line; a change is all or nothing, gives each rule a
 * number of its own, and keeps those that allow before those that deny. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "supervise/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct network_rules base_rules(void)
{
	static const char *const rules[] = {"api.example.com", "*.example.org:80",
					    "tcp://10.0.0.0/8:5432", "GET www.example.com/v1/**"};
	struct network_rules r = {0};
	_cleanup_policy_ struct policy *p = NULL;

	if (policy_new(&p, NULL) < 0)
		abort();
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (policy_add_rule(p, i == 1, rules[i], "base", NULL) < 0)
			abort();
	if (network_rules_init(&r, &p->network, NULL) < 0)
		abort();
	return r;
}

static void check_rules(const struct network_rules *r)
{
	const struct policy_network *n = &r->policy->network;

	for (size_t i = 0; i < n->nrules; i++) {
		if (network_rules_find(r, r->numbers[i]) != (long)i || r->numbers[i] >= r->next)
			abort();
		if (i && n->rules[i - 1].deny && !n->rules[i].deny)
			abort();
		if (!network_rule_covers(&n->rules[i], &n->rules[i]))
			abort();
	}
}

static int change(json_t *arguments, json_t **ret, enum control_code *code, struct pale_err *err)
{
	_cleanup_rules_ struct network_rules old = base_rules(), now = {0};
	_cleanup_change_ struct network_change c = {0};
	_cleanup_effect_ struct network_effect effect = {0};
	uint64_t revision;
	int r = control_network_change(arguments, &c, &revision, code, err);

	if (r < 0)
		return r;
	r = network_change_apply(&c, &old, &now, &effect, err);
	*code = CONTROL_POLICY;
	if (r < 0 && (now.policy || effect.added))
		abort();
	if (r < 0)
		return r;
	check_rules(&now);
	if ((effect.widened || effect.narrowed) != (now.revision == old.revision + 1))
		abort();
	*ret = json_pack("{s:O, s:O}", "added", effect.added, "removed", effect.removed);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_request_ struct control_request q = {0};
	_cleanup_buf_ struct buf out = BUF_INIT(CONTROL_REPLY_MAX);
	enum control_code code = CONTROL_FAILED;
	struct pale_err err = {0};
	json_t *result = NULL;
	int r;

	/* Files and directories that a text could name are no part of this. */
	if (memmem(data, size, "preset", 6))
		return 0;
	r = control_parse((const char *)data, size, &q, &code, &err);
	if (r == 0)
		r = change(q.arguments, &result, &code, &err);
	if (r == 0)
		r = control_reply(&out, q.id, result);
	else
		r = control_error(&out, q.id, code, &err);
	if (r < 0 || memchr(out.data, '\n', out.len) != out.data + out.len - 1)
		abort();
	return 0;
}
