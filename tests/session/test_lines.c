/* Whether a piece of code goes on in the next line. */
#include "cli/session_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

struct row {
	const char *code;
	bool open;
};

static void check(const char *kernel, const struct row *rows)
{
	for (; rows->code; rows++)
		if (session_lines_open(kernel, rows->code, strlen(rows->code)) != rows->open)
			fail_msg("%s: %s: %s", kernel, rows->open ? "not open" : "open",
				 rows->code);
}

static void python(void **state)
{
	static const struct row rows[] = {
		{"", false},
		{"x = 1", false},
		{"x = 1\n", false},
		{"if x:", true},
		{"if x: # a comment", true},
		{"if x: pass", false},
		{"if x:\n    y", true},
		{"if x:\n    y\n", false},
		{"if x:\n    y\n    ", false},
		{"def f():\n    if x:\n        y\n    return 1", true},
		{"def f():\n    return 1\nf()", false},
		{"@decorated", true},
		{"@decorated\ndef f(): pass", false},
		{"f(1,", true},
		{"f(1,\n", true},
		{"f(1,\n2)", false},
		{"x = [1, # (", true},
		{"x = {'a:': 1}", false},
		{"x = {1:", true},
		{"x = ')'", false},
		{"x = '(", false}, /* the interpreter says it */
		{"x = 'a\\'(", false},
		{"x = 'a\\", true},
		{"x = 'a\\\nb'", false},
		{"x = \"\"\"a", true},
		{"x = \"\"\"a\n", true},
		{"x = \"\"\"a'\n\"\"\"", false},
		{"x = '''a\\''''", false},
		{"x = 1 + \\", true},
		{"x = 1 + \\\n2", false},
		{"x = 1 # \\", false},
		{"d = x[1:2]", false},
		{"lambda: 1", false},
		{"for i in r:\n\n    f(i)", true},
		{"%%time", false},
		{"!ls '", false},
		{NULL, false},
	};

	(void)state;
	check("python", rows);
}

static void ipython(void **state)
{
	static const struct row rows[] = {
		{"%%time", true},    {"%%bash\necho '", true}, {"%%bash\necho '\n", false},
		{"%time f(", false}, {"!ls '(", false},	       {"x = 7 % (", true},
		{"f(\n%a", true},    {"if x:", true},	       {NULL, false},
	};

	(void)state;
	check("ipython", rows);
}

static void node(void **state)
{
	static const struct row rows[] = {
		{"x = 1", false},
		{"function f() {", true},
		{"function f() {\n}", false},
		{"f(function () {\n})", false},
		{"x = '{'", false},
		{"x = `a", true},
		{"x = `a\n${b}`", false},
		{"x = 1 // {", false},
		{"/* a", true},
		{"/* a\n*/", false},
		{"x.match(/[\"'{]/)", false},
		{"x = a / b; y = '{' / 2", false},
		{"[1,", true},
		{NULL, false},
	};

	(void)state;
	check("node", rows);
}

static void bash(void **state)
{
	static const struct row rows[] = {
		{"ls", false},
		{"ls \\", true},
		{"ls \\\n-l", false},
		{"echo '", true},
		{"echo 'a\nb'", false},
		{"echo \"a\\\"", true},
		{"echo if", false},
		{"echo $(ls", true},
		{"echo $(ls)", false},
		{"if true; then", true},
		{"if true; then echo x; fi", false},
		{"for i in 1 2 3", true},
		{"for i in 1 2 3; do", true},
		{"for i in 1 2 3; do echo $i; done", false},
		{"while read x; do\n if a; then b\n fi", true},
		{"while read x; do\n if a; then b\n fi\ndone", false},
		{"case $x in\na) b;;", true},
		{"case $x in\na) b;;\nesac", false},
		{"f() {", true},
		{"f() {\n ls\n}", false},
		{"cat <<END", true},
		{"cat <<END\na'", true},
		{"cat <<END\na'\nEND", false},
		{"cat <<-'END'\na\n\tEND", false},
		{"cat <<<x", false},
		{"ls |", true},
		{"ls &&", true},
		{"ls ||", true},
		{"ls &", false},
		{"ls | wc", false},
		{"# it's", false},
		{"echo a#'b'", false},
		{"echo $# 'a'", false},
		{"echo ${x%a} ${#x}", false},
		{"done", false},
		{NULL, false},
	};

	(void)state;
	check("bash", rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(python),
		cmocka_unit_test(ipython),
		cmocka_unit_test(node),
		cmocka_unit_test(bash),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("session/lines", tests, NULL, NULL);
}
