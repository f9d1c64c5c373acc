/* Which interpreter for which code. */
#include "plan/interpreter.h"
#include "tree.h"

#include <limits.h>
#include <unistd.h>

static const char *words(const struct interpreter *i)
{
	static char out[512];
	size_t used = 0;

	out[0] = '\0';
	for (size_t k = 0; k < i->argc; k++) {
		const char *w = i->argv[k];
		size_t n = strlen(tree_root);

		used += (size_t)snprintf(out + used, sizeof(out) - used, "%s%s", k ? " " : "",
					 *tree_root && strncmp(w, tree_root, n) == 0 ? w + n + 1
										     : w);
	}
	assert_null(i->argv[i->argc]);
	return out;
}

static void test_code(void **state)
{
	static const char *const rows[][2] = {
		{"python", "python3 -c X"},  {"py", "python3 -c X"}, {"node", "node -e X"},
		{"javascript", "node -e X"}, {"bash", "bash -c X"},  {"sh", "sh -c X"},
		{"ruby", "ruby -e X"},	     {"perl", "perl -e X"},  {"ts", "deno eval X"},
	};
	struct interpreter i;
	struct pale_err err;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		assert_int_equal(interpreter_for_code(rows[k][0], "X", &i, &err), 0);
		assert_string_equal(words(&i), rows[k][1]);
	}
	assert_int_equal(interpreter_for_stdin("python", &i, &err), 0);
	assert_string_equal(words(&i), "python3 -");
	assert_int_equal(interpreter_for_stdin("bash", &i, &err), 0);
	assert_string_equal(words(&i), "bash -s");
	assert_int_equal(interpreter_for_stdin("ts", &i, &err), 0);
	assert_string_equal(words(&i), "deno run -");
	assert_int_equal(interpreter_for_code("pyhton", "X", &i, &err), -PALE_E_USAGE);
	assert_non_null(strstr(err.message, "did you mean python?"));
	assert_int_equal(interpreter_for_code("cobol", "X", &i, &err), -PALE_E_USAGE);
}

static const char *script(const char *name)
{
	static struct interpreter i;
	static char path[PATH_MAX];
	struct pale_err err;

	snprintf(path, sizeof(path), "%s/%s", tree_root, name);
	switch (interpreter_for_script(path, &i, &err)) {
	case 0: return words(&i);
	case -PALE_E_NOTFOUND: return err.sys == EACCES ? "unusable" : "missing";
	default: return "?";
	}
}

static void test_scripts(void **state)
{
	(void)state;
	tree_file("a.py", "print(1)\n", 0644);
	assert_string_equal(script("a.py"), "python3 a.py");
	tree_file("a.mjs", "", 0755);
	assert_string_equal(script("a.mjs"), "node a.mjs");
	/* Executable and with a #! line: by that. */
	tree_file("b.py", "#!/usr/bin/env python3.11\n", 0755);
	assert_string_equal(script("b.py"), "b.py");
	/* Not executable: the line says the language, against the suffix. */
	tree_file("c.py", "#!/usr/bin/env -S node --flag\n", 0644);
	assert_string_equal(script("c.py"), "node c.py");
	tree_file("d", "#!/opt/py/bin/python3.9\n", 0644);
	assert_string_equal(script("d"), "python3 d");
	tree_file("e", "#!/bin/zsh\n", 0644);
	assert_string_equal(script("e"), "unusable");
	tree_file("f", "hello\n", 0755);
	assert_string_equal(script("f"), "unusable");
	tree_file("g.sh", "", 0644);
	assert_string_equal(script("g.sh"), "sh g.sh");
	tree_elf("h", NULL, NULL, NULL);
	assert_string_equal(script("h"), "h");
	assert_string_equal(script("nothing.py"), "missing");
	assert_string_equal(script("work"), "missing");
	tree_file("i.ts", "", 0644);
	assert_string_equal(script("i.ts"), "deno run i.ts");
}

static void test_is_script(void **state)
{
	char path[PATH_MAX];

	(void)state;
	assert_false(interpreter_is_script("python3"));
	assert_false(interpreter_is_script("/tmp"));
	assert_false(interpreter_is_script("no-such-file.py"));
	assert_true(interpreter_is_script("/proc/self/exe"));
	tree_file("a.py", "", 0644);
	snprintf(path, sizeof(path), "%s/a.py", tree_root);
	assert_true(interpreter_is_script(path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code),
		cmocka_unit_test_setup_teardown(test_scripts, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_is_script, tree_setup, tree_teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
