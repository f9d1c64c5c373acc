/* Hostile bytes never reach a terminal as they are. */
#include "base/str.h"
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static void test_escape(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"plain", "plain"},	    {"a\nb", "a\\nb"},
		{"\x1b[31m", "\\x1b[31m"},  {"q\"\\", "q\\\"\\\\"},
		{"\xff\xfe", "\\xff\\xfe"}, {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
		{"\xc2\x9b", "\\xc2\\x9b"}, {"\xe2\x80\xae", "\\xe2\\x80\\xae"},
		{"\xc0\x80", "\\xc0\\x80"}, {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
		{"\x7f", "\\x7f"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1024);

		assert_int_equal(str_escape(&b, rows[i].in, strlen(rows[i].in)), 0);
		assert_string_equal(b.data, rows[i].out);
	}
}

static void test_cut(void **state)
{
	char out[16];

	(void)state;
	assert_string_equal(str_escape_into(out, sizeof(out), "0123456789abcdef0123", 20),
			    "0123456789ab...");
	assert_string_equal(str_escape_into(out, sizeof(out), "short", 5), "short");
	assert_string_equal(QUOTED("a\tb"), "\"a\\tb\"");
}

static void test_distance(void **state)
{
	(void)state;
	assert_int_equal(str_distance("memory", "memroy", 3), 1);
	assert_int_equal(str_distance("wall", "wal", 3), 1);
	assert_int_equal(str_distance("abc", "xyz", 2), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_distance),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
