/* Sizes, durations and processor counts: exact, or refused. */
#include "base/num.h"
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

struct row {
	const char *text;
	int r;
	uint64_t value;
};

static const struct row sizes[] = {
	{"0", 0, 0},
	{"1", 0, 1},
	{"512MiB", 0, 512u << 20},
	{"1.5KiB", 0, 1536},
	{"1 GiB", 0, 1u << 30},
	{"2k", 0, 2048},
	{"2kB", 0, 2000},
	{"1T", 0, UINT64_C(1) << 40},
	{"", -EINVAL, 0},
	{"-1", -EINVAL, 0},
	{"+1", -EINVAL, 0},
	{" 1", -EINVAL, 0},
	{"1x", -EINVAL, 0},
	{"0x10", -EINVAL, 0},
	{"1.", -EINVAL, 0},
	{"0.3B", -EINVAL, 0},
	{"1MiBs", -EINVAL, 0},
	{"18446744073709551615", 0, UINT64_MAX},
	{"18446744073709551616", -ERANGE, 0},
	{"99999999T", -ERANGE, 0},
};
static const struct row durations[] = {
	{"30s", 0, 30000},   {"1.5s", 0, 1500},	 {"250ms", 0, 250},
	{"2m", 0, 120000},   {"1h", 0, 3600000}, {"7", 0, 7000},
	{"2min", 0, 120000}, {"1d", -EINVAL, 0}, {"0.0001s", -EINVAL, 0},
};
static const struct row millis[] = {
	{"1", 0, 1000},		{"0.5", 0, 500},      {"2.25", 0, 2250},
	{"0.0005", -EINVAL, 0}, {"half", -EINVAL, 0},
};

static void check(const struct row *rows, size_t n, int (*parse)(const char *, uint64_t *))
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = 0;

		assert_int_equal(parse(rows[i].text, &value), rows[i].r);
		assert_int_equal(value, rows[i].value);
	}
}

static void test_parse(void **state)
{
	(void)state;
	check(sizes, ARRAY_SIZE(sizes), num_parse_size);
	check(durations, ARRAY_SIZE(durations), num_parse_duration);
	check(millis, ARRAY_SIZE(millis), num_parse_milli);
}

static void test_format_round_trip(void **state)
{
	static const uint64_t values[] = {0,	      1,       1023,	   1024, 1536,
					  512u << 20, 1000000, UINT64_MAX, 1500, 90000};
	char text[NUM_TEXT];
	uint64_t back;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		assert_int_equal(num_parse_size(num_format_size(text, values[i]), &back), 0);
		assert_int_equal(back, values[i]);
		if (values[i] > 1u << 30)
			continue;
		assert_int_equal(num_parse_duration(num_format_duration(text, values[i]), &back),
				 0);
		assert_int_equal(back, values[i]);
		assert_int_equal(num_parse_milli(num_format_milli(text, values[i]), &back), 0);
		assert_int_equal(back, values[i]);
	}
	assert_string_equal(num_format_size(text, 512u << 20), "512MiB");
	assert_string_equal(num_format_duration(text, 1500), "1.5s");
	assert_string_equal(num_round_size(text, 144818176), "138.1MiB");
	assert_string_equal(num_round_size(text, 128 << 20), "128MiB");
	assert_string_equal(num_round_size(text, 1023), "1023B");
	assert_string_equal(num_round_size(text, UINT64_MAX), "16777215.9TiB");
	assert_string_equal(num_round_duration(text, 30001), "30s");
	assert_string_equal(num_round_duration(text, 1290), "1.2s");
	assert_string_equal(num_round_duration(text, 251), "251ms");
	assert_string_equal(num_format_milli(text, 500), "0.5");
	assert_string_equal(num_format_milli(text, 10000), "10");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_format_round_trip),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
