/* What a plan with a network promises: a line a rule, what is not covered, and never a secret. */
#include "plan/plan.h"
#include "plan/promise.h"
#include "base/str.h"
#include <stdarg.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static const struct promise *find(const struct plan *p, const char *key, size_t nth)
{
	for (size_t i = 0; i < p->npromises; i++)
		if (p->promises[i].axis == AXIS_NETWORK && strcmp(p->promises[i].key, key) == 0 &&
		    nth-- == 0)
			return &p->promises[i];
	return NULL;
}

static struct plan *promise_of(const char *text, struct policy **ret_policy)
{
	struct plan *p = calloc(1, sizeof(*p));
	struct pale_err err;

	assert_non_null(p);
	assert_int_equal(policy_new(ret_policy, &err), 0);
	if (policy_load_memory(*ret_policy, text, strlen(text), "t.yaml", "/base", false, &err) < 0)
		fail_msg("%s", err.message);
	p->events = true;
	if (network_wanted(&(*ret_policy)->network)) {
		p->network = calloc(1, sizeof(*p->network));
		assert_non_null(p->network);
		assert_int_equal(network_copy(p->network, &(*ret_policy)->network), 0);
	}
	assert_int_equal(plan_promise(p, &err), 0);
	return p;
}

static void test_none(void **state)
{
	_cleanup_policy_ struct policy *policy = NULL;
	_cleanup_plan_ struct plan *p =
		promise_of("pale: 1\nnetwork: {deny: [{host: a.example}]}\n", &policy);

	(void)state;
	assert_string_equal(find(p, "egress", 0)->what, "no way out; loopback works");
	assert_null(find(p, "deny", 0));
}

static void test_rules(void **state)
{
	_cleanup_policy_ struct policy *policy = NULL;
	_cleanup_plan_ struct plan *p = promise_of("pale: 1\nnetwork:\n"
						   "  allow:\n"
						   "    - {preset: pypi, rate: 1MiB, bytes: 1GiB}\n"
						   "    - {host: a.example, methods: GET}\n"
						   "    - {host: s.example}\n"
						   "    - {host: g.example, port: 22}\n"
						   "    - {host: d.example, protocol: http}\n"
						   "  deny: [{host: b.example}]\n"
						   "  secrets: [{env: K, value_from: \"command:cat "
						   "/secret\", hosts: s.example, header: "
						   "x-key}]\n"
						   "  exempt: [pinned.example]\n"
						   "  rate: 1MiB\n  bytes: 1GiB\n",
						   &policy);

	(void)state;
	assert_string_equal(find(p, "allow", 0)->what,
			    "tls pypi.org:443 (preset pypi), a second 1MiB, in all 1GiB");
	assert_string_equal(find(p, "allow", 2)->what, "tls a.example:443 GET");
	assert_string_equal(find(p, "allow", 4)->what, "tcp g.example:22");
	assert_string_equal(find(p, "deny", 0)->what, "b.example");
	assert_null(find(p, "deny", 1));
	assert_null(find(p, "allow", 6));
	/* s.example has a secret, and so is opened. */
	assert_true(str_starts(find(p, "tls", 0)->what, "TLS of 2 rules is passed on"));
	assert_non_null(strstr(find(p, "tls", 0)->uncovered, "domain fronting"));
	assert_true(str_starts(find(p, "intercept", 0)->what, "TLS of 2 rules is opened"));
	assert_true(str_starts(find(p, "http", 0)->what, "clear HTTP of 1 rule:"));
	assert_non_null(strstr(find(p, "raw", 0)->uncovered, "nothing of the content"));
	assert_string_equal(find(p, "exempt", 0)->what, "TLS is never opened for pinned.example");
	assert_string_equal(find(p, "secret", 0)->what,
			    "K to s.example, header x-key, from command:cat /secret");
	assert_string_equal(find(p, "caps", 0)->what,
			    "1024 connections at a time; 1MiB a second; in all 1GiB");
}

/* Each of more rules than a plan usually has promises has its line, and long ones are cut. */
static void test_many(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1 << 20);
	_cleanup_policy_ struct policy *policy = NULL;
	_cleanup_plan_ struct plan *p = NULL;

	(void)state;
	buf_adds(&text, "pale: 1\nnetwork:\n  allow:\n");
	for (int i = 0; i < 500; i++)
		buf_addf(&text, "  - {host: h%d.example}\n", i);
	buf_addf(&text, "  - {host: a.example, paths: [/%0120d, /%0120d]}\n", 1, 2);
	p = promise_of(text.data, &policy);
	assert_string_equal(find(p, "allow", 499)->what, "tls h499.example:443");
	assert_true(str_ends(find(p, "allow", 500)->what, "..."));
	assert_null(find(p, "allow", 501));
	assert_int_equal(p->promises[p->npromises - 1].axis, AXIS_RESOURCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_many),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
