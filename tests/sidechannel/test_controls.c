/* Speculation controls and core scheduling against kernels and processors that answer differently:
 * prctl() is the test's own. What a real one does is side_channels.py's. */
#include "confine/core_sched.h"
#include "confine/speculation.h"
#include "plan/sidechannel.h"

#include <errno.h>
#include <linux/prctl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <setjmp.h>
#include <cmocka.h>

int __wrap_prctl(int option, ...);

static int answers[3]; /* of PR_GET_SPECULATION_CTRL; negative: the errno */
static long set[3];    /* what was set */
static int set_fails;  /* errno */
static int core_get, core_create, created;

int __wrap_prctl(int option, ...)
{
	unsigned long a[2];
	va_list ap;
	int r = 0;

	va_start(ap, option);
	a[0] = va_arg(ap, unsigned long);
	a[1] = va_arg(ap, unsigned long);
	va_end(ap);
	switch (option) {
	case PR_GET_SPECULATION_CTRL: r = answers[a[0]]; break;
	case PR_SET_SPECULATION_CTRL:
		r = -set_fails;
		if (r == 0)
			set[a[0]] = (long)a[1];
		break;
	case PR_SCHED_CORE:
		created += (int)a[0] == PR_SCHED_CORE_CREATE;
		r = -((int)a[0] == PR_SCHED_CORE_GET ? core_get : core_create);
		break;
	default: r = -EINVAL;
	}
	if (r < 0) {
		errno = -r;
		return -1;
	}
	return r;
}

static void test_probe(void **state)
{
	static const struct {
		int answer;
		enum speculation_state is;
	} rows[] = {
		{-EINVAL, SPECULATION_ABSENT},
		{-ENODEV, SPECULATION_ABSENT},
		{PR_SPEC_NOT_AFFECTED, SPECULATION_UNAFFECTED},
		{PR_SPEC_ENABLE, SPECULATION_ABSENT},
		{PR_SPEC_DISABLE, SPECULATION_BY_HOST},
		{PR_SPEC_PRCTL | PR_SPEC_ENABLE, SPECULATION_BY_PROCESS},
		{PR_SPEC_PRCTL | PR_SPEC_DISABLE, SPECULATION_BY_PROCESS},
		/* Only until the next exec: a box has to ask all the same. */
		{PR_SPEC_PRCTL | PR_SPEC_DISABLE_NOEXEC, SPECULATION_BY_PROCESS},
		{PR_SPEC_PRCTL | PR_SPEC_FORCE_DISABLE, SPECULATION_BY_PROCESS},
	};
	struct speculation_host host;
	struct pale_err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int c = 0; c < SPECULATION_L1D_FLUSH; c++) {
			answers[0] = answers[1] = PR_SPEC_NOT_AFFECTED;
			answers[c] = rows[i].answer;
			assert_int_equal(speculation_probe(&host, &err), 0);
			assert_int_equal(host.state[c], rows[i].is);
			assert_int_equal(host.state[!c], SPECULATION_UNAFFECTED);
		}
	/* Of the flush, what it answers where it is not offered is "off for good". */
	answers[SPECULATION_L1D_FLUSH] = PR_SPEC_FORCE_DISABLE;
	assert_int_equal(speculation_probe(&host, &err), 0);
	assert_int_not_equal(host.state[SPECULATION_L1D_FLUSH], SPECULATION_BY_PROCESS);
}

static void test_restrict(void **state)
{
	struct pale_err err;

	(void)state;
	memset(set, 0, sizeof(set));
	set_fails = 0;
	assert_int_equal(speculation_restrict(0, &err), 0);
	assert_int_equal(set[0] | set[1] | set[2], 0);
	assert_int_equal(speculation_restrict(1u << SPECULATION_INDIRECT_BRANCH, &err), 0);
	assert_int_equal(set[PR_SPEC_INDIRECT_BRANCH], PR_SPEC_FORCE_DISABLE);
	assert_int_equal(set[PR_SPEC_STORE_BYPASS], 0);
	assert_int_equal(speculation_restrict(7, &err), 0);
	assert_int_equal(set[PR_SPEC_STORE_BYPASS], PR_SPEC_FORCE_DISABLE);
	assert_int_equal(set[PR_SPEC_L1D_FLUSH], PR_SPEC_ENABLE);
	/* Refused at the last moment: nothing runs without. */
	set_fails = EPERM;
	assert_true(speculation_restrict(1u << SPECULATION_STORE_BYPASS, &err) < 0);
	assert_non_null(strstr(err.message, "store bypass"));
}

static void test_core(void **state)
{
	enum core_sched_state is;
	struct pale_err err;

	(void)state;
	core_get = 0;
	assert_int_equal(core_sched_probe(&is, &err), 0);
	assert_int_equal(is, CORE_SCHED_OFFERED);
	core_get = ENODEV;
	assert_int_equal(core_sched_probe(&is, &err), 0);
	assert_int_equal(is, CORE_SCHED_NO_THREADS);
	core_get = EINVAL; /* then the processors tell */
	assert_int_equal(core_sched_probe(&is, &err), 0);
	assert_int_not_equal(is, CORE_SCHED_OFFERED);
	assert_int_equal(created, 0);
	assert_int_equal(core_sched_separate(&err), 0);
	assert_int_equal(created, 1);
	core_create = ENOMEM;
	assert_true(core_sched_separate(&err) < 0);
}

static const struct promise *promise_of(const struct plan *p, const char *key)
{
	for (size_t i = 0; i < p->npromises; i++)
		if (strcmp(p->promises[i].key, key) == 0)
			return &p->promises[i];
	return NULL;
}

/* What a policy that asks for it gets, for each answer of the kernel. */
static void test_plan(void **state)
{
	_cleanup_policy_ struct policy *policy = NULL;
	struct pale_err err;

	(void)state;
	core_create = core_get = 0;
	answers[0] = PR_SPEC_PRCTL | PR_SPEC_ENABLE;
	answers[1] = PR_SPEC_DISABLE;
	assert_int_equal(policy_new(&policy, &err), 0);
	for (int asked = 0; asked < 2; asked++) {
		_cleanup_plan_ struct plan *p = calloc(1, sizeof(*p));

		assert_non_null(p);
		p->events = true;
		assert_int_equal(sidechannel_plan(p, policy, &err), 0);
		assert_int_equal(p->side.core_sched, asked);
		assert_int_equal(p->side.speculation, asked << SPECULATION_STORE_BYPASS);
		assert_int_equal(plan_promise(p, &err), 0);
		assert_int_equal(promise_of(p, "core_scheduling") != NULL, asked);
		if (asked) {
			assert_non_null(strstr(promise_of(p, "core_scheduling")->mechanism,
					       "PR_SCHED_CORE"));
			assert_string_equal(promise_of(p, "speculation")->mechanism,
					    "PR_SET_SPECULATION_CTRL: store bypass; the host, for "
					    "every process: indirect branch");
		}
		assert_int_equal(policy_set(policy, "kernel.speculation", "strict", NULL, &err), 0);
		assert_int_equal(policy_set(policy, "kernel.core_scheduling", "true", NULL, &err),
				 0);
	}
	answers[1] = PR_SPEC_ENABLE;
	for (int weaker = 0; weaker < 2; weaker++) {
		_cleanup_plan_ struct plan *p = calloc(1, sizeof(*p));

		assert_non_null(p);
		p->events = true;
		p->best_effort = weaker ? ITEM_SPECULATION : ITEM_CORE_SCHEDULING;
		if (!weaker) {
			assert_true(sidechannel_plan(p, policy, &err) < 0);
			assert_non_null(strstr(err.message, "\"indirect branch\""));
			continue;
		}
		assert_int_equal(sidechannel_plan(p, policy, &err), 0);
		assert_int_equal(plan_promise(p, &err), 0);
		assert_true(promise_of(p, "speculation")->best_effort);
		assert_non_null(strstr(promise_of(p, "speculation")->fallback, "indirect branch"));
	}
}

/* What could not be asked at the moment is no property of the host: no box is made without it, also
 * where the policy lets it be without. */
static void test_moment(void **state)
{
	static const int moments[] = {EINTR, EAGAIN, ENOMEM, EMFILE, ENFILE, EIO};
	_cleanup_policy_ struct policy *policy = NULL;
	struct pale_err err;

	(void)state;
	assert_int_equal(policy_new(&policy, &err), 0);
	assert_int_equal(policy_set(policy, "kernel.speculation", "strict", NULL, &err), 0);
	assert_int_equal(policy_set(policy, "kernel.core_scheduling", "true", NULL, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(moments); i++)
		for (int which = 0; which < 2; which++) {
			_cleanup_plan_ struct plan *p = calloc(1, sizeof(*p));

			assert_non_null(p);
			p->best_effort = ITEM_SPECULATION | ITEM_CORE_SCHEDULING | ITEM_L1D_FLUSH;
			answers[0] = answers[1] = which ? -moments[i] : -EINVAL;
			core_get = which ? EINVAL : moments[i];
			assert_int_equal(sidechannel_plan(p, policy, &err), -PALE_E_SYSTEM);
			assert_int_equal(err.sys, moments[i]);
			assert_non_null(
				strstr(err.message, which ? "store bypass" : "core scheduling"));
		}
	/* And what is lasting is. */
	answers[0] = answers[1] = -EINVAL;
	core_get = EINVAL;
	for (int weaker = 0; weaker < 2; weaker++) {
		_cleanup_plan_ struct plan *p = calloc(1, sizeof(*p));

		assert_non_null(p);
		p->best_effort = weaker ? ITEM_SPECULATION | ITEM_CORE_SCHEDULING : 0;
		assert_int_equal(sidechannel_plan(p, policy, &err), weaker ? 0 : -PALE_E_HOST);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe),  cmocka_unit_test(test_restrict),
		cmocka_unit_test(test_core),   cmocka_unit_test(test_plan),
		cmocka_unit_test(test_moment),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
