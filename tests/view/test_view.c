/* The machine as a box sees it, from recorded texts of a larger one. */
#include "plan/view.h"
#include <stdarg.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static const char meminfo[] = "MemTotal:       24684092 kB\n"
			      "MemFree:        22518176 kB\n"
			      "MemAvailable:   24065064 kB\n"
			      "Buffers:           25376 kB\n"
			      "SwapTotal:       8388604 kB\n"
			      "SwapFree:        8388604 kB\n"
			      "CommitLimit:    12342044 kB\n"
			      "VmallocTotal:   34359738367 kB\n"
			      "HugePages_Total:       7\n"
			      "Hugepagesize:       2048 kB\n";

static const char cpuinfo[] =
	"processor\t: 0\nmodel name\t: AMD EPYC\nphysical id\t: 0\nsiblings\t: 4\n"
	"core id\t\t: 0\ncpu cores\t: 4\nflags\t\t: fpu vme\n\n"
	"processor\t: 1\nmodel name\t: AMD EPYC\nphysical id\t: 0\nsiblings\t: 4\n"
	"core id\t\t: 1\ncpu cores\t: 4\nflags\t\t: fpu vme\n\n"
	"processor\t: 2\nmodel name\t: AMD EPYC\nphysical id\t: 1\nsiblings\t: 4\n"
	"core id\t\t: 0\ncpu cores\t: 4\nflags\t\t: fpu vme\n\n";

static const char cpuinfo_arm[] = "processor\t: 0\nBogoMIPS\t: 50.00\n\n"
				  "processor\t: 1\nBogoMIPS\t: 50.00\n\n"
				  "Hardware\t: BCM2835\nModel\t\t: Raspberry Pi 4\n";

static const char stat_text[] =
	"cpu  60 0 30 600 0 0 3 0 0 0\n"
	"cpu0 10 0 10 100 0 0 1 0 0 0\n"
	"cpu1 20 0 10 200 0 0 1 0 0 0\n"
	"cpu2 30 0 10 300 0 0 1 0 0 0\n"
	"intr 1021756 0 5 7\nctxt 2327449\nbtime 1795964608\nprocesses 61353\n"
	"procs_running 133\nprocs_blocked 0\nsoftirq 847468 0 64184\n";

static void test_cpus(void **state)
{
	static const struct {
		uint64_t milli;
		unsigned host, want;
	} rows[] = {{0, 8, 8},	  {1, 8, 1},	 {500, 8, 1},  {1000, 8, 1},
		    {1001, 8, 2}, {64000, 8, 8}, {2000, 0, 1}, {UINT64_MAX, 8, 8}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(view_cpus(rows[i].milli, rows[i].host), rows[i].want);
}

static void test_cpu_list(void **state)
{
	_cleanup_buf_ struct buf one = BUF_INIT(64), four = BUF_INIT(64);

	(void)state;
	assert_int_equal(view_cpu_list(&one, 1), 0);
	assert_string_equal(one.data, "0\n");
	assert_int_equal(view_cpu_list(&four, 4), 0);
	assert_string_equal(four.data, "0-3\n");
}

static void test_meminfo(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096), all = BUF_INIT(4096);

	(void)state;
	assert_int_equal(view_meminfo(&b, meminfo, 512u << 20), 0);
	assert_string_equal(b.data, "MemTotal:         524288 kB\n"
				    "MemFree:          524288 kB\n"
				    "MemAvailable:     524288 kB\n"
				    "Buffers:               0 kB\n"
				    "SwapTotal:             0 kB\n"
				    "SwapFree:              0 kB\n"
				    "CommitLimit:      524288 kB\n"
				    "VmallocTotal:   34359738367 kB\n"
				    "HugePages_Total:       0\n"
				    "Hugepagesize:       2048 kB\n");
	/* No limit, or more than there is: the host's. */
	assert_int_equal(view_meminfo(&all, meminfo, UINT64_MAX), 0);
	assert_non_null(strstr(all.data, "MemTotal:       24684092 kB\n"));
}

static void test_cpuinfo(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096), arm = BUF_INIT(4096);

	(void)state;
	assert_int_equal(view_cpuinfo(&b, cpuinfo, 2), 0);
	assert_string_equal(
		b.data, "processor\t: 0\nmodel name\t: AMD EPYC\nphysical id\t: 0\nsiblings\t: 2\n"
			"core id\t\t: 0\ncpu cores\t: 2\nflags\t\t: fpu vme\n\n"
			"processor\t: 1\nmodel name\t: AMD EPYC\nphysical id\t: 0\nsiblings\t: 2\n"
			"core id\t\t: 1\ncpu cores\t: 2\nflags\t\t: fpu vme\n\n");
	assert_int_equal(view_cpuinfo(&arm, cpuinfo_arm, 1), 0);
	assert_string_equal(arm.data, "processor\t: 0\nBogoMIPS\t: 50.00\n\n"
				      "Hardware\t: BCM2835\nModel\t\t: Raspberry Pi 4\n");
}

static void test_stat(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	(void)state;
	assert_int_equal(view_stat(&b, stat_text, 2), 0);
	assert_string_equal(b.data, "cpu  30 0 20 300 0 0 2 0 0 0\n"
				    "cpu0 10 0 10 100 0 0 1 0 0 0\n"
				    "cpu1 20 0 10 200 0 0 1 0 0 0\n"
				    "intr 0\nctxt 0\nbtime 1795964608\n"
				    "processes 1\nprocs_running 1\nprocs_blocked 0\n"
				    "softirq 0 0 0 0 0 0 0 0 0 0 0\n");
}

static void test_too_small(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(40), c = BUF_INIT(40), d = BUF_INIT(40);

	(void)state;
	assert_int_equal(view_meminfo(&b, meminfo, 1 << 20), -ENOSPC);
	assert_int_equal(view_cpuinfo(&c, cpuinfo, 2), -ENOSPC);
	assert_int_equal(view_stat(&d, stat_text, 2), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpus),	cmocka_unit_test(test_cpu_list),
		cmocka_unit_test(test_meminfo), cmocka_unit_test(test_cpuinfo),
		cmocka_unit_test(test_stat),	cmocka_unit_test(test_too_small),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
