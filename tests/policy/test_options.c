/* The options table, row by row: from each row come a default that parses, bounds that hold, a
 * place in the schema, in the documentation and in the starter policy, and a direction in which it
 * widens. */
#include "policy/options.h"
#include "policy/model.h"
#include "base/str.h"
#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

/* A row of any list. */
union entry {
	struct policy_file file;
	struct rule_row rule;
	struct secret_row secret;
};

#define EACH_ROW(o) for (const struct policy_option *o = policy_options; o->key; o++)

static bool is_number(const struct policy_option *o)
{
	return o->type == OPTION_SIZE || o->type == OPTION_TIME || o->type == OPTION_MILLI ||
	       o->type == OPTION_COUNT;
}

static bool in_policy(const struct policy_option *o)
{
	return !strchr(o->key, '[');
}

static void load(struct policy *p, const char *body)
{
	_cleanup_free_ char *text = NULL;
	struct pale_err err;

	assert_true(asprintf(&text, "pale: 1\n%s\n", str_starts(body, "pale:") ? "" : body) > 0);
	if (policy_load_memory(p, text, strlen(text), "t.yaml", "/base", false, &err) < 0)
		fail_msg("%s: %s", body, err.message);
}

static void test_defaults(void **state)
{
	_cleanup_policy_ struct policy *p = NULL;
	struct pale_err err;

	(void)state;
	assert_int_equal(policy_new(&p, &err), 0);
	EACH_ROW(o)
	{
		_cleanup_buf_ struct buf b = BUF_INIT(4096);

		if (!in_policy(o) || !o->def)
			continue;
		option_format(o, p, &b);
		assert_string_equal(b.data, o->def);
	}
}

/* One step past each bound is refused, by a message that names the key; the bound itself is taken.
 */
static void test_bounds(void **state)
{
	_cleanup_policy_ struct policy *p = NULL;
	union entry entry = {0};
	struct pale_err err;

	(void)state;
	assert_int_equal(policy_new(&p, &err), 0);
	EACH_ROW(o)
	{
		void *base = in_policy(o) ? (void *)p : (void *)&entry;
		const char *const bounds[] = {o->min, o->max};
		char text[64];

		if (!is_number(o))
			continue;
		assert_non_null(o->min);
		assert_non_null(o->max);
		for (size_t i = 0; i < 2; i++) {
			_cleanup_buf_ struct buf b = BUF_INIT(64);

			assert_int_equal(option_parse(o, bounds[i], base, &err), 0);
			option_format(o, base, &b);
			assert_string_equal(b.data, bounds[i]);
		}
		snprintf(text, sizeof(text), "9%s", o->max);
		assert_int_equal(option_parse(o, text, base, &err), -PALE_E_POLICY);
		assert_non_null(strstr(err.message, o->key));
		assert_non_null(strstr(err.message, o->max));
		if (strcmp(o->min, "0") != 0) {
			assert_int_equal(option_parse(o, "0", base, &err), -PALE_E_POLICY);
			assert_non_null(strstr(err.message, o->min));
		}
		assert_int_equal(option_parse(o, "99999999999999999999999", base, &err),
				 -PALE_E_POLICY);
		assert_int_equal(option_parse(o, "much", base, &err), -PALE_E_POLICY);
		assert_non_null(strstr(err.message, option_expected(o)));
		assert_int_equal(option_parse(o, "unlimited", base, &err), -PALE_E_POLICY);
		assert_non_null(strstr(err.message, o->never ? "never" : o->max));
		if (o->never) {
			_cleanup_buf_ struct buf b = BUF_INIT(64);

			assert_int_equal(option_parse(o, "never", base, &err), 0);
			assert_int_equal(option_number(o, base), 0);
			option_format(o, base, &b);
			assert_string_equal(b.data, "never");
		} else {
			assert_int_equal(option_parse(o, "never", base, &err), -PALE_E_POLICY);
		}
		assert_int_equal(option_parse(o, "-1", base, &err), -PALE_E_POLICY);
		assert_int_equal(option_parse(o, "", base, &err), -PALE_E_POLICY);
		assert_int_equal(option_parse(o, "1\n", base, &err), -PALE_E_POLICY);
	}
}

static void test_words(void **state)
{
	_cleanup_policy_ struct policy *p = NULL;
	union entry entry = {0};
	struct pale_err err;

	(void)state;
	assert_int_equal(policy_new(&p, &err), 0);
	EACH_ROW(o)
	{
		void *base = in_policy(o) ? (void *)p : (void *)&entry;

		for (const struct option_word *w = o->words; w && w->word; w++) {
			char wrong[64];

			assert_non_null(w->doc);
			assert_int_equal(option_parse(o, w->word, base, &err), 0);
			snprintf(wrong, sizeof(wrong), "%sx", w->word);
			assert_int_equal(option_parse(o, wrong, base, &err), -PALE_E_POLICY);
			assert_non_null(strstr(err.message, w->word));
			assert_non_null(strstr(err.message, "did you mean"));
		}
	}
}

static void test_rows_are_whole(void **state)
{
	const struct policy_option *items = option_find("best_effort");
	_cleanup_free_ char *schema = NULL, *docs = NULL, *starter = NULL;
	struct pale_err err;

	(void)state;
	assert_int_equal(policy_schema_json(&schema, &err), 0);
	assert_int_equal(policy_docs_markdown(&docs, &err), 0);
	assert_int_equal(policy_init_text(NULL, &starter, &err), 0);
	EACH_ROW(o)
	{
		char quoted[128];
		_cleanup_policy_ struct policy *p = NULL;

		assert_non_null(o->doc);
		assert_true(str_ends(o->doc, "."));
		assert_ptr_equal(option_find(o->key), o);
		snprintf(quoted, sizeof(quoted), "\"%s\": {", option_name(o));
		assert_non_null(strstr(schema, quoted));
		snprintf(quoted, sizeof(quoted), "| `%s` |", option_name(o));
		assert_non_null(strstr(docs, quoted));
		if (in_policy(o)) {
			snprintf(quoted, sizeof(quoted), "%s:", option_name(o));
			assert_non_null(strstr(starter, quoted));
		}
		if (o->item)
			assert_string_not_equal(option_word_of(items->words, o->item), "?");
		for (const struct policy_option *other = o + 1; other->key; other++) {
			assert_string_not_equal(o->key, other->key);
			assert_true(!o->flag || !other->flag || strcmp(o->flag, other->flag) != 0);
		}
		/* The example is that of a policy that loads. */
		assert_true(o->example || !in_policy(o));
		assert_int_equal(policy_new(&p, &err), 0);
		if (o->example)
			load(p, o->example);
	}
	for (const struct option_reserved *k = policy_reserved; k->key; k++)
		assert_null(option_find(k->key));
}

/* Each number, raised, is a line that names the key, and lowered is none; each word, likewise. */
static void test_widened(void **state)
{
	struct pale_err err;
	char lines[8][160];

	(void)state;
	EACH_ROW(o)
	{
		_cleanup_policy_ struct policy *low = NULL, *high = NULL;
		const char *least = o->min, *most = o->max;
		size_t n = 0;

		if (!in_policy(o) || o->widens == WIDENS_NOT)
			continue;
		if (o->type == OPTION_WORD) {
			while (o->words[n + 1].word)
				n++;
			least = o->words[0].word;
			most = o->words[n].word;
		} else if (o->type == OPTION_WORDS) {
			least = "";
			most = "memory,cpus";
		} else if (!is_number(o)) {
			continue;
		}
		assert_int_equal(policy_new(&low, &err), 0);
		assert_int_equal(policy_new(&high, &err), 0);
		assert_int_equal(policy_set(low, o->key, least, "--set", &err), 0);
		assert_int_equal(policy_set(high, o->key, most, "--set", &err), 0);
		assert_int_equal(policy_widened(low, high, lines, 8), 1);
		assert_true(str_starts(lines[0], o->key));
		assert_int_equal(policy_widened(high, low, lines, 8), 0);
		assert_int_equal(policy_widened(low, low, lines, 8), 0);
	}
}

/* Every limit of struct policy_limits has a row: a new field without one would have no default. */
static void test_no_limit_without_a_row(void **state)
{
	size_t n = 0;

	(void)state;
	EACH_ROW(o)
	n += option_in_group(o, "limits");
	assert_int_equal(n, sizeof(struct policy_limits) / sizeof(uint64_t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_words),	 cmocka_unit_test(test_rows_are_whole),
		cmocka_unit_test(test_widened),	 cmocka_unit_test(test_no_limit_without_a_row),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
