/* Rules that are in force: what covers what, and what a change of them does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "policy/network_change.h"

static struct policy *policy_of(const char *rule, bool deny)
{
	struct policy *p = NULL;
	struct pale_err err = {0};

	if (policy_new(&p, &err) < 0 || policy_add_rule(p, deny, rule, "test", &err) < 0)
		fail_msg("%s: %s", rule, err.message);
	return p;
}

/* What is to be removed is read as a rule that denies: what it leaves out is any. */
static void test_covers(void **state)
{
	static const struct {
		const char *wanted, *rule;
		bool covers;
	} cases[] = {
		{"a.example", "a.example", true},
		{"a.example", "tcp://a.example:1-65535", true},
		{"a.example", "udp://a.example:53", true},
		{"a.example", "GET a.example/x/**", true},
		{"a.example", "b.a.example", false},
		{"a.example", "*.a.example", false},
		{"*.a.example", "a.example", false},
		{"*.a.example", "b.a.example", true},
		{"*.a.example", "*.a.example", true},
		{"*.a.example", "*.b.a.example", true},
		{"*.b.a.example", "*.a.example", false},
		{"*.a.example", "xa.example", false},
		{"a.example:443", "a.example", true},
		{"a.example:80", "a.example", false},
		{"a.example:443", "tcp://a.example:443-444", false},
		{"a.example:400-500", "tcp://a.example:443-444", true},
		{"tls://a.example", "http://a.example", false},
		{"udp://a.example", "tcp://a.example:53", false},
		{"tcp://a.example:443", "tls://a.example:443", true},
		{"GET a.example", "GET a.example/x", true},
		{"GET a.example", "POST a.example", false},
		{"GET a.example", "a.example", false},
		{"GET,POST a.example", "POST a.example", true},
		{"GET a.example", "GET,POST a.example", false},
		{"a.example/x/**", "a.example/x/**", true},
		{"a.example/x/**", "a.example/y", false},
		{"a.example/x/**", "a.example", false},
		{"10.0.0.0/8", "tcp://10.1.0.0/16:22", true},
		{"10.1.0.0/16", "tcp://10.0.0.0/8:22", false},
		{"10.0.0.0/8", "tcp://11.0.0.1:22", false},
		{"[fd00::/8]", "tcp://10.0.0.1:22", false},
		{"[fd00::/8]", "tcp://[fd00::1]:22", true},
		{"10.0.0.1", "a.example", false},
		{"a.example", "tcp://10.0.0.1:22", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_policy_ struct policy *wanted = policy_of(cases[i].wanted, true);
		_cleanup_policy_ struct policy *rule = policy_of(cases[i].rule, false);

		if (network_rule_covers(&wanted->network.rules[0], &rule->network.rules[0]) !=
		    cases[i].covers)
			fail_msg("%s and %s: not %d", cases[i].wanted, cases[i].rule,
				 cases[i].covers);
	}
}

static struct network_rules rules_of(const char *const *allow, const char *deny)
{
	_cleanup_policy_ struct policy *p = policy_of(deny, true);
	struct network_rules r = {0};
	struct pale_err err = {0};

	for (; *allow; allow++)
		assert_int_equal(policy_add_rule(p, false, *allow, "test", &err), 0);
	assert_int_equal(network_rules_init(&r, &p->network, &err), 0);
	return r;
}

static void test_apply(void **state)
{
	static const char *const allow[] = {"a.example", "b.example", NULL};
	_cleanup_rules_ struct network_rules old = rules_of(allow, "c.example"), now = {0},
					     then = {0};
	_cleanup_change_ struct network_change c = {0}, d = {0};
	_cleanup_effect_ struct network_effect e = {0}, f = {0};
	struct pale_err err = {0};

	(void)state;
	assert_int_equal(network_change_init(&c, &err), 0);
	assert_int_equal(network_change_add(&c, false, "d.example", "test", &err), 0);
	assert_int_equal(network_change_add(&c, false, "b.example", "test", &err), 0);
	assert_int_equal(network_change_add(&c, true, "e.example", "test", &err), 0);
	assert_int_equal(network_change_remove_number(&c, 1, &err), 0);
	assert_int_equal(network_change_apply(&c, &old, &now, &e, &err), 0);
	assert_true(e.widened && e.narrowed);
	assert_int_equal(now.revision, 2);
	assert_int_equal(now.policy->network.nrules, 4);
	assert_string_equal(now.policy->network.rules[0].host, "b.example");
	assert_string_equal(now.policy->network.rules[1].host, "d.example");
	assert_true(now.policy->network.rules[2].deny && now.policy->network.rules[3].deny);
	assert_int_equal(now.numbers[0], 2);
	assert_int_equal(now.numbers[1], 4);
	assert_int_equal(now.numbers[2], 3);
	assert_int_equal(now.numbers[3], 5);
	assert_int_equal(network_rules_find(&now, 1), -1);
	/* The old are as they were. */
	assert_int_equal(old.policy->network.nrules, 3);
	/* To take a rule that denies away is to allow more. */
	assert_int_equal(network_change_init(&d, &err), 0);
	assert_int_equal(network_change_remove(&d, "*.example", "test", &err), 0);
	assert_int_equal(network_change_apply(&d, &now, &then, &f, &err), 0);
	assert_true(f.widened && f.narrowed);
	assert_int_equal(then.policy->network.nrules, 0);
}

/* All or nothing: the host whose TLS is not opened has no rule for methods. */
static void test_refused(void **state)
{
	static const char text[] = "pale: 1\nnetwork:\n  allow: [{host: a.example}]\n"
				   "  exempt: [a.example]\n";
	_cleanup_policy_ struct policy *p = NULL;
	_cleanup_rules_ struct network_rules old = {0}, now = {0};
	_cleanup_change_ struct network_change c = {0};
	_cleanup_effect_ struct network_effect e = {0};
	struct pale_err err = {0};

	(void)state;
	assert_int_equal(policy_new(&p, &err), 0);
	assert_int_equal(policy_load_memory(p, text, strlen(text), "t", "/", false, &err), 0);
	assert_int_equal(network_rules_init(&old, &p->network, &err), 0);
	assert_int_equal(network_change_init(&c, &err), 0);
	assert_int_equal(network_change_add(&c, false, "GET a.example/x", "test", &err), 0);
	assert_int_equal(network_change_apply(&c, &old, &now, &e, &err), -PALE_E_POLICY);
	assert_null(now.policy);
	assert_null(e.added);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_covers),
					   cmocka_unit_test(test_apply),
					   cmocka_unit_test(test_refused)};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
