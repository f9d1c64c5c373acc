/* Freezing fails: whoever reads and writes files beside the box then hears that it goes on, and the
 * session does, too. The files under test are compiled in, so that the control group, which is of
 * version 2 and does not do as it is told, can be played here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/err.h"
#include "confine/cgroup.h"
#include "files/inside.h"

static int fails;   /* what freezing says */
static bool stands; /* whether all of the group does */
static bool group;  /* as it was told last */
static bool told;   /* what the workers inside were told last */
static unsigned tellings;

static bool test_can_freeze(const struct cgroup *g)
{
	(void)g;
	return true;
}

static int test_freeze(struct cgroup *g, bool freeze, struct pale_err *err)
{
	(void)g;
	if (fails)
		return err_set(err, PALE_E_SYSTEM, "test", -fails, "freezing");
	group = freeze;
	return 0;
}

static bool test_stands(struct cgroup *g)
{
	(void)g;
	return stands;
}

static int test_thaw_fd(const struct cgroup *g, const char **ret)
{
	(void)g;
	*ret = "";
	return -1;
}

static void test_inside_frozen(struct inside *in, bool frozen)
{
	(void)in;
	told = frozen;
	tellings++;
}

#define cgroup_can_freeze test_can_freeze
#define cgroup_freeze	  test_freeze
#define cgroup_stands	  test_stands
#define cgroup_thaw_fd	  test_thaw_fd
#define inside_frozen	  test_inside_frozen
#define freeze_set	  tested_freeze_set
#define freeze_done	  tested_freeze_done
#define freeze_end	  tested_freeze_end
#include "../../src/supervise/freeze.c"
#undef freeze_set
#undef freeze_done
#undef freeze_end

static char something;
static struct plan plan = {.cgroup_limits.freezer = true};
static struct run run = {.plan = &plan};

static int begin(void **state)
{
	(void)state;
	run.cgroup = (struct cgroup *)(void *)&something;
	run.inside = (struct inside *)(void *)&something;
	run.frozen = group = told = false;
	stands = true;
	tellings = 0;
	fails = 0;
	return 0;
}

static void test_freezes(void **state)
{
	struct pale_err err;

	(void)state;
	assert_int_equal(tested_freeze_set(&run, true, &err), 0);
	assert_true(run.frozen && group && told);
	assert_int_equal(tested_freeze_set(&run, false, &err), 0);
	assert_false(run.frozen || group || told);
	assert_int_equal(tellings, 2);
}

static void test_cannot(void **state)
{
	struct pale_err err;

	(void)state;
	fails = -EBUSY;
	assert_int_equal(tested_freeze_set(&run, true, &err), -PALE_E_SYSTEM);
	assert_false(run.frozen);
	assert_int_equal(tellings, 2);
	assert_false(told);
}

/* It is told, but some process does not come to a stand: the session lets it go on. */
static void test_not_in_time(void **state)
{
	struct pale_err err;

	(void)state;
	stands = false;
	assert_int_equal(tested_freeze_set(&run, true, &err), 1);
	assert_true(run.frozen && told);
	assert_false(tested_freeze_done(&run));
	assert_int_equal(tested_freeze_set(&run, false, &err), 0);
	assert_false(run.frozen || group || told);
}

/* Nobody knows whether it goes on: then nothing is brought back beside it either. */
static void test_cannot_thaw(void **state)
{
	struct pale_err err;

	(void)state;
	assert_int_equal(tested_freeze_set(&run, true, &err), 0);
	fails = -EBUSY;
	assert_int_equal(tested_freeze_set(&run, false, &err), -PALE_E_SYSTEM);
	assert_true(run.frozen && told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_freezes, begin),
		cmocka_unit_test_setup(test_cannot, begin),
		cmocka_unit_test_setup(test_not_in_time, begin),
		cmocka_unit_test_setup(test_cannot_thaw, begin),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("freeze", tests, NULL, NULL);
}
