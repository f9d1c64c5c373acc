/* Policies from hostile bytes, as YAML, as JSON, and as what a flag says of the network. What loads
 * must survive its canonical form: written, read and written again it is the same text. What does
 * not load must leave the policy as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *canonical(const struct policy *p)
{
	struct pale_err err;
	char *text = NULL;

	if (policy_to_json(p, &text, &err) < 0)
		abort();
	return text;
}

static void load(const char *text, size_t len, bool json)
{
	_cleanup_policy_ struct policy *p = NULL, *again = NULL, *from_yaml = NULL;
	_cleanup_free_ char *before = NULL, *after = NULL, *third = NULL, *yaml = NULL,
			    *fourth = NULL;
	struct pale_err err = {0};
	char lines[4][160];

	if (policy_new(&p, &err) < 0 || policy_new(&again, &err) < 0)
		abort();
	before = canonical(p);
	if (policy_load_memory(p, text, len, "fuzz\x1b.yaml", "/base", json, &err) < 0) {
		after = canonical(p);
		if (strcmp(before, after) != 0 || err.code == PALE_OK || !err.message[0] ||
		    memchr(err.message, '\x1b', sizeof(err.message)))
			abort();
		return;
	}
	after = canonical(p);
	if (policy_load_memory(again, after, strlen(after), "again", "/base", true, &err) < 0)
		abort();
	third = canonical(again);
	if (strcmp(after, third) != 0 || policy_widened(p, again, lines, 4) != 0)
		abort();
	if (policy_new(&from_yaml, &err) < 0 || policy_to_yaml(p, &yaml, &err) < 0 ||
	    policy_load_memory(from_yaml, yaml, strlen(yaml), "yaml", "/base", false, &err) < 0)
		abort();
	fourth = canonical(from_yaml);
	if (strcmp(after, fourth) != 0)
		abort();
	(void)!policy_check(p, &err);
}

static void add(const char *text, int kind)
{
	_cleanup_policy_ struct policy *p = NULL, *again = NULL;
	_cleanup_free_ char *before = NULL, *after = NULL;
	struct pale_err err = {0};

	if (policy_new(&p, &err) < 0 || policy_new(&again, &err) < 0)
		abort();
	if (kind == 2 ? policy_add_secret(p, text, "--secret", &err) < 0
		      : policy_add_rule(p, kind == 1, text, "--allow", &err) < 0) {
		if (!err.message[0] || p->network.nrules || p->network.nsecrets)
			abort();
		return;
	}
	before = canonical(p);
	if (policy_load_memory(again, before, strlen(before), "again", "/", true, &err) < 0)
		abort();
	after = canonical(again);
	if (strcmp(before, after) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[600];

	if (size < sizeof(text)) {
		memcpy(text, data, size);
		text[size] = '\0';
		for (int kind = 0; kind < 3; kind++)
			add(text, kind);
	}
	load((const char *)data, size, false);
	load((const char *)data, size, true);
	return 0;
}
