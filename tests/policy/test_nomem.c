/* Out of memory at every single allocation: an error, no crash, and the policy is what it was. The
 * linker puts the functions below in the place of the C library's (tests/policy/meson.build). */
#include "policy/policy.h"
#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static long countdown = -1; /* -1: never; 0: fails now and from then on */

static bool fails(void)
{
	if (countdown > 0)
		countdown--;
	return countdown == 0;
}

#define WRAP(type, name, params, args)     \
	type __real_##name params;         \
	type __wrap_##name params;         \
	type __wrap_##name params          \
	{                                  \
		if (fails()) {             \
			errno = ENOMEM;    \
			return NULL;       \
		}                          \
		return __real_##name args; \
	}

WRAP(void *, malloc, (size_t n), (n))
WRAP(void *, calloc, (size_t n, size_t m), (n, m))
WRAP(void *, realloc, (void *p, size_t n), (p, n))
WRAP(void *, reallocarray, (void *p, size_t n, size_t m), (p, n, m))
WRAP(char *, strdup, (const char *s), (s))
WRAP(char *, strndup, (const char *s, size_t n), (s, n))

static const char yaml[] = "pale: 1\nuser: x\nfiles:\n  - {path: /a, from: ./b}\n"
			   "  - {path: {hex: 2fff}, access: write, collect: c}\n"
			   "limits: {wall: 1s}\nbest_effort: [memory]\nenv: {A: 1, B: 2}\n"
			   "network:\n"
			   "  deny: [{host: x.example, reason: none}]\n"
			   "  allow:\n"
			   "    - {preset: debian, reason: mirror, rate: 1MiB}\n"
			   "    - {host: a.example, methods: [get, head], paths: [/a, /b]}\n"
			   "    - {host: b.example, address: 10.0.0.0/8, ports: [80, 443, 22]}\n"
			   "  secrets: [{env: K, value_from: \"file:k\", hosts: a.example, header: "
			   "x}]\n"
			   "  exempt: [p.example]\n  extra_ca: [x, y]\n"
			   "session: {imports: [json, os.path]}\n";
static const char json[] = "{\"pale\": 1, \"user\": \"x\", \"files\": [{\"path\": \"/a\"}],\n"
			   "\"env\": {\"A\": 1, \"B\": {\"hex\": \"ff\"}}}";

/* All that a run does with a policy; 0 or the first error. */
static int use(bool as_json, struct policy *p, struct pale_err *err)
{
	const char *text = as_json ? json : yaml;
	_cleanup_policy_ struct policy *copy = NULL;
	_cleanup_free_ char *canonical = NULL, *shown = NULL;
	char digest[65];
	int r = policy_load_memory(p, text, strlen(text), "f", "/base", as_json, err);

	if (r < 0) {
		/* Nothing of it was taken. */
		assert_int_equal(p->nfiles, 0);
		assert_int_equal(p->nenv, 0);
		assert_int_equal(p->network.nrules, 0);
		assert_int_equal(p->network.nsecrets, 0);
		assert_null(p->network.exempt);
		assert_null(p->session.imports);
		assert_string_equal(p->user, "agent");
		return r;
	}
	r = policy_copy(&copy, p, err);
	if (r >= 0)
		r = policy_set(copy, "user", "y", NULL, err);
	if (r >= 0)
		r = policy_add_env(copy, "C", "3", err);
	if (r >= 0)
		r = policy_check(copy, err);
	if (r >= 0)
		r = policy_set(copy, "network.exempt", "q.example,r.example", NULL, err);
	if (r >= 0)
		r = policy_set(copy, "session.imports", "csv,decimal", NULL, err);
	if (r >= 0)
		r = policy_add_rule(copy, false, "GET a.example/x", "--allow", err);
	if (r >= 0)
		r = policy_add_secret(copy, "L=env:M@a.example,query=q", "--secret", err);
	if (r >= 0)
		r = policy_to_json(copy, &canonical, err);
	if (r >= 0)
		r = policy_to_yaml(copy, &shown, err);
	if (r >= 0)
		r = policy_digest(copy, digest, err);
	return r;
}

static void each_allocation(bool as_json)
{
	long n = 0;
	int r = -1;

	/* Until an n is reached at which nothing fails any more. */
	while (r < 0) {
		struct policy *p = NULL;
		struct pale_err err = {0};

		countdown = ++n;
		r = policy_new(&p, &err);
		if (r >= 0)
			r = use(as_json, p, &err);
		countdown = -1;
		policy_free(p);
		if (r < 0 && (r != -PALE_E_NOMEM && r != -PALE_E_POLICY))
			fail_msg("allocation %ld: %d %s", n, r, err.message);
		assert_true(r >= 0 || err.message[0]);
		assert_true(n < 50000);
	}
	assert_true(n > 50);
}

static void test_yaml(void **state)
{
	(void)state;
	each_allocation(false);
}

static void test_json(void **state)
{
	(void)state;
	each_allocation(true);
}

static void test_texts(void **state)
{
	static int (*const make[])(char **, struct pale_err *) = {policy_schema_json,
								  policy_docs_markdown};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(make); i++) {
		int r = -1;

		/* The schema takes thousands of allocations: every 17th will do. */
		for (long n = 1; r < 0; n += 17) {
			char *text = NULL;
			struct pale_err err = {0};

			countdown = n;
			r = make[i](&text, &err);
			countdown = -1;
			free(text);
			assert_true(r >= 0 || r == -PALE_E_NOMEM);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_yaml),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_texts),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
