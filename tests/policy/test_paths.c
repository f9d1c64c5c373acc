/* Paths of requests: which globs cover them, and which are refused because servers read them in
 * different ways. */
#include "policy/network.h"
#include "base/str.h"
#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static void test_globs(void **state)
{
	static const struct {
		const char *glob, *path;
		bool matches;
	} rows[] = {
		{"/", "/", true},
		{"/", "/a", false},
		{"/a", "/a", true},
		{"/a", "/A", false},
		{"/a", "/a/", false},
		{"/a/", "/a", false},
		{"/v1/*", "/v1/x", true},
		{"/v1/*", "/v1/", true},
		{"/v1/*", "/v1", false},
		{"/v1/*", "/v1/x/y", false},
		{"/v1/*", "/v1x/y", false},
		{"/v1/*/z", "/v1/x/z", true},
		{"/v1/*/z", "/v1/x/y/z", false},
		{"/v1/*/z", "/v1//z", true},
		{"/v1/**", "/v1/", true},
		{"/v1/**", "/v1/x/y/z", true},
		{"/v1/**", "/v1", false},
		{"/v1/**", "/v2/v1/", false},
		{"/**/z", "/a/b/z", true},
		{"/**/z", "/z", false},
		{"/**/z", "/a/z/b", false},
		{"**", "/anything/at/all", true},
		{"**", "/", true},
		{"**.git/info/refs", "/a/b.git/info/refs", true},
		{"**.git/*", "/a.git/b.git/c", true},
		{"/a*b*c", "/axbxbxc", true},
		{"/a*b*c", "/axbx/c", false},
		{"/a**b*c/d", "/a/b/b/bxc/d", true},
		{"/a**b*c/d", "/a/b/b/bx/c/d", false},
		{"/**a*b/**c", "/xa/ab/zc", true},
		{"/**a*b/**c", "/xa/a/b/zc", false},
		{"/***", "/x/y", true},
		{"/[a]?", "/[a]?", true},
		{"/[a]", "/a", false},
		{"/a?", "/ab", false},
		{"/x*", "/x\xc3\xa9", true},
		{"", "", true},
		{"*", "", true},
		{"**", "", true},
		{"/*", "/*", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (network_glob_matches(rows[i].glob, rows[i].path) != rows[i].matches)
			fail_msg("%s %s", rows[i].glob, rows[i].path);
}

#define PATH(s) (s), sizeof(s) - 1

static void test_normalise(void **state)
{
	static const struct {
		const char *path;
		size_t len;
		const char *form, *why; /* form NULL: refused, and why says so */
	} rows[] = {
		{PATH("/"), "/", NULL},
		{PATH("/a/b"), "/a/b", NULL},
		{PATH("/a/b/"), "/a/b/", NULL},
		{PATH("/a%20b"), "/a b", NULL},
		{PATH("/%61%2d%7E%41"), "/a-~A", NULL},
		{PATH("/%e2%82%ac"), "/\xe2\x82\xac", NULL},
		{PATH("/\xe2\x82\xac"), "/\xe2\x82\xac", NULL},
		{PATH("/a%3fb%23c"), "/a?b#c", NULL},
		{PATH("/a.b/..c/d../.e/..."), "/a.b/..c/d../.e/...", NULL},
		{PATH("/100%25"), "/100%", NULL},
		{PATH("/100%25zz"), "/100%zz", NULL},
		{PATH("/a:b@c!$&'()*+,=~"), "/a:b@c!$&'()*+,=~", NULL},
		{PATH("/a/../b"), NULL, "segment"},
		{PATH("/a/./b"), NULL, "segment"},
		{PATH("/.."), NULL, "segment"},
		{PATH("/."), NULL, "segment"},
		{PATH("/a/.."), NULL, "segment"},
		{PATH("/a/%2e%2e/b"), NULL, "segment"},
		{PATH("/a/.%2E/b"), NULL, "segment"},
		{PATH("/a/%2e/b"), NULL, "segment"},
		{PATH("/a/%2e%2e"), NULL, "segment"},
		{PATH("/a//b"), NULL, "empty segment"},
		{PATH("//"), NULL, "empty segment"},
		{PATH("//a"), NULL, "empty segment"},
		{PATH("/a%2fb"), NULL, "slash"},
		{PATH("/a%2F..%2fb"), NULL, "slash"},
		{PATH("/a%5cb"), NULL, "backslash"},
		{PATH("/a\\b"), NULL, "backslash"},
		{PATH("/a/..;/b"), NULL, "`;`"},
		{PATH("/a;x=1/b"), NULL, "`;`"},
		{PATH("/a%3bx/b"), NULL, "`;`"},
		{PATH("/a%00b"), NULL, "NUL"},
		{PATH("/a\0b"), NULL, "NUL"},
		{PATH("/a%0d%0ab"), NULL, "control"},
		{PATH("/a\nb"), NULL, "control"},
		{PATH("/a\x7f"), NULL, "control"},
		{PATH("/a b"), NULL, "blank"},
		{PATH("/a?b"), NULL, "`?`"},
		{PATH("/a#b"), NULL, "`#`"},
		{PATH("/a%"), NULL, "broken"},
		{PATH("/a%2"), NULL, "broken"},
		{PATH("/a%zz"), NULL, "broken"},
		{PATH("/a%2g"), NULL, "broken"},
		{PATH("/a%u0041"), NULL, "broken"},
		{PATH("/%252e%252e/b"), NULL, "double"},
		{PATH("/%25%32%65"), NULL, "double"},
		{PATH("/%25252e"), NULL, "double"},
		{PATH("/%c0%ae%c0%ae/b"), NULL, "UTF-8"},
		{PATH("/%c0%af"), NULL, "UTF-8"},
		{PATH("/\xff"), NULL, "UTF-8"},
		{PATH(""), NULL, "beginning"},
		{PATH("a"), NULL, "beginning"},
		{PATH("*"), NULL, "beginning"},
		{PATH("%2fa"), NULL, "beginning"},
		{PATH("http://x/a"), NULL, "beginning"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *why = NULL;
		char out[64];
		int r = network_path_normalise(rows[i].path, rows[i].len, out, sizeof(out), &why);

		if (r != (rows[i].form ? 0 : -EINVAL))
			fail_msg("%s: %d %s", rows[i].path, r, why ? why : "");
		if (rows[i].form)
			assert_string_equal(out, rows[i].form);
		else if (!strstr(why, rows[i].why))
			fail_msg("%s: %s", rows[i].path, why);
	}
}

static void test_long(void **state)
{
	const char *why = NULL;
	char out[8];

	(void)state;
	assert_int_equal(network_path_normalise("/234567", 7, out, 8, &why), 0);
	assert_int_equal(network_path_normalise("/2345678", 8, out, 8, &why), -ENAMETOOLONG);
	assert_int_equal(network_path_normalise("/23456%37", 9, out, 8, &why), 0);
	assert_string_equal(out, "/234567");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_globs),
		cmocka_unit_test(test_normalise),
		cmocka_unit_test(test_long),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
