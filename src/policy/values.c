/* What reads and writes one value of a policy by its row in the options table. Runs wherever a
 * policy is read, with the caller's rights; the texts may be hostile. */
#include "policy/options.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

const char *option_expected(const struct policy_option *o)
{
	switch (o->type) {
	case OPTION_SIZE: return "a size such as 64MiB, 1.5GiB or 500kB";
	case OPTION_TIME: return "a time such as 30s, 1.5s, 250ms, 2m or 1h";
	case OPTION_MILLI: return "a number such as 1, 0.5 or 2.25, with at most three decimals";
	case OPTION_COUNT: return "a whole number";
	case OPTION_VERSION: return "1";
	case OPTION_PATH: return o->expected ? o->expected : "a path";
	case OPTION_PATHS: return "a path, or a list of them";
	case OPTION_TEXT:
	case OPTION_TEXTS: return o->expected ? o->expected : "one of";
	case OPTION_BOOL: return "true or false";
	case OPTION_WORD: return "one of";
	case OPTION_WORDS: return "a list of";
	case OPTION_GROUP: return "a mapping of keys, {key: value}";
	case OPTION_ENV: return "a mapping of variables, {NAME: value}";
	case OPTION_LIST: return o->expected;
	}
	return "a value";
}

uint64_t option_number(const struct policy_option *o, const void *base)
{
	const char *at = (const char *)base + o->offset;
	uint64_t number = 0;
	unsigned word = 0;

	if (o->type != OPTION_WORD && o->type != OPTION_WORDS && o->type != OPTION_BOOL) {
		memcpy(&number, at, sizeof(number));
		return number;
	}
	memcpy(&word, at, sizeof(word));
	return word;
}

static const char *text_of(const struct policy_option *o, const void *base)
{
	const char *text;

	memcpy(&text, (const char *)base + o->offset, sizeof(text));
	return text;
}

static char **texts_of(const struct policy_option *o, const void *base)
{
	char **texts;

	memcpy(&texts, (const char *)base + o->offset, sizeof(texts));
	return texts;
}

bool option_given(const struct policy_option *o, const void *base)
{
	switch (o->type) {
	case OPTION_TEXT:
	case OPTION_PATH: return text_of(o, base) != NULL;
	case OPTION_TEXTS:
	case OPTION_PATHS: return texts_of(o, base) && *texts_of(o, base);
	case OPTION_SIZE:
	case OPTION_TIME:
	case OPTION_MILLI:
	case OPTION_COUNT:
	case OPTION_WORDS:
	case OPTION_BOOL: return o->never || option_number(o, base) != 0;
	default: return true;
	}
}

bool option_shown(const struct policy_option *o, const void *base)
{
	switch (o->type) {
	case OPTION_WORDS:
	case OPTION_TEXTS:
	case OPTION_PATHS: return true; /* an empty list */
	default: return option_given(o, base);
	}
}

void option_row_done(const struct option_list *list, void *row)
{
	for (const struct policy_option *o = policy_options; o->key; o++) {
		if (!option_in_group(o, list->entries))
			continue;
		if (o->type == OPTION_TEXT || o->type == OPTION_PATH)
			free((char *)text_of(o, row));
		else if (o->type == OPTION_TEXTS || o->type == OPTION_PATHS)
			texts_free(texts_of(o, row));
	}
}

void texts_free(char **texts)
{
	for (size_t i = 0; texts && texts[i]; i++)
		free(texts[i]);
	free(texts);
}

bool texts_same(char *const *a, char *const *b)
{
	size_t i = 0;

	if (!a || !b)
		return a == b;
	while (a[i] && b[i] && strcmp(a[i], b[i]) == 0)
		i++;
	return !a[i] && !b[i];
}

int texts_add(char ***texts, const char *text)
{
	char **longer, *copy;
	size_t n = 0;

	while (*texts && (*texts)[n])
		n++;
	copy = strdup(text);
	longer = copy ? reallocarray(*texts, n + 2, sizeof(*longer)) : NULL;
	if (!longer) {
		free(copy);
		return -ENOMEM;
	}
	longer[n] = copy;
	longer[n + 1] = NULL;
	*texts = longer;
	return 0;
}

int texts_copy(char ***ret, char *const *texts)
{
	*ret = NULL;
	for (size_t i = 0; texts && texts[i]; i++) {
		if (texts_add(ret, texts[i]) < 0) {
			texts_free(*ret);
			*ret = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

static int parse_number(enum option_type type, const char *text, uint64_t *ret)
{
	switch (type) {
	case OPTION_SIZE: return num_parse_size(text, ret);
	case OPTION_TIME: return num_parse_duration(text, ret);
	case OPTION_MILLI: return num_parse_milli(text, ret);
	default: return num_parse_u64(text, UINT64_MAX, ret);
	}
}

/* Units as people write them, in lower case, and what is meant. A factor goes into the number. */
static const struct {
	enum option_type type;
	const char *written, *unit;
	unsigned factor, divisor;
} unit_slips[] = {
	{OPTION_SIZE, "b", "B", 1, 1},		{OPTION_SIZE, "byte", "B", 1, 1},
	{OPTION_SIZE, "bytes", "B", 1, 1},	{OPTION_SIZE, "ki", "KiB", 1, 1},
	{OPTION_SIZE, "kib", "KiB", 1, 1},	{OPTION_SIZE, "kb", "kB", 1, 1},
	{OPTION_SIZE, "kilobytes", "kB", 1, 1}, {OPTION_SIZE, "m", "MiB", 1, 1},
	{OPTION_SIZE, "mi", "MiB", 1, 1},	{OPTION_SIZE, "mib", "MiB", 1, 1},
	{OPTION_SIZE, "mb", "MB", 1, 1},	{OPTION_SIZE, "megabytes", "MB", 1, 1},
	{OPTION_SIZE, "meg", "MiB", 1, 1},	{OPTION_SIZE, "g", "GiB", 1, 1},
	{OPTION_SIZE, "gi", "GiB", 1, 1},	{OPTION_SIZE, "gib", "GiB", 1, 1},
	{OPTION_SIZE, "gb", "GB", 1, 1},	{OPTION_SIZE, "gigabytes", "GB", 1, 1},
	{OPTION_SIZE, "gig", "GiB", 1, 1},	{OPTION_SIZE, "t", "TiB", 1, 1},
	{OPTION_SIZE, "ti", "TiB", 1, 1},	{OPTION_SIZE, "tib", "TiB", 1, 1},
	{OPTION_SIZE, "tb", "TB", 1, 1},	{OPTION_TIME, "msec", "ms", 1, 1},
	{OPTION_TIME, "millis", "ms", 1, 1},	{OPTION_TIME, "milliseconds", "ms", 1, 1},
	{OPTION_TIME, "s", "s", 1, 1},		{OPTION_TIME, "sec", "s", 1, 1},
	{OPTION_TIME, "secs", "s", 1, 1},	{OPTION_TIME, "second", "s", 1, 1},
	{OPTION_TIME, "seconds", "s", 1, 1},	{OPTION_TIME, "m", "m", 1, 1},
	{OPTION_TIME, "mins", "m", 1, 1},	{OPTION_TIME, "minute", "m", 1, 1},
	{OPTION_TIME, "minutes", "m", 1, 1},	{OPTION_TIME, "h", "h", 1, 1},
	{OPTION_TIME, "hr", "h", 1, 1},		{OPTION_TIME, "hrs", "h", 1, 1},
	{OPTION_TIME, "hour", "h", 1, 1},	{OPTION_TIME, "hours", "h", 1, 1},
	{OPTION_TIME, "d", "h", 24, 1},		{OPTION_TIME, "day", "h", 24, 1},
	{OPTION_TIME, "days", "h", 24, 1},	{OPTION_MILLI, "m", "", 1, 1000},
	{OPTION_MILLI, "%", "", 1, 100},	{OPTION_MILLI, "cpu", "", 1, 1},
	{OPTION_MILLI, "cpus", "", 1, 1},	{OPTION_MILLI, "core", "", 1, 1},
	{OPTION_MILLI, "cores", "", 1, 1},
};

/* Appends ": did you mean 512MiB?" where the text is a number with a misspelt unit. */
static void suggest_unit(const struct policy_option *o, const char *text, struct pale_err *err)
{
	size_t n = strspn(text, "0123456789."), used = 0;
	char number[24], unit[16] = "";
	uint64_t milli;

	if (n == 0 || n >= sizeof(number))
		return;
	memcpy(number, text, n);
	number[n] = '\0';
	for (const char *p = text + n; *p; p++) {
		if (*p == ' ' || *p == '_')
			continue;
		if (used + 1 >= sizeof(unit))
			return;
		unit[used++] = (char)tolower((unsigned char)*p);
	}
	for (size_t i = 0; i < ARRAY_SIZE(unit_slips); i++) {
		char fixed[64], plain[NUM_TEXT];

		if (unit_slips[i].type != o->type || strcmp(unit_slips[i].written, unit) != 0)
			continue;
		if (unit_slips[i].factor == 1 && unit_slips[i].divisor == 1) {
			snprintf(fixed, sizeof(fixed), "%s%s", number, unit_slips[i].unit);
		} else if (num_parse_milli(number, &milli) == 0 && milli < UINT32_MAX) {
			milli = milli * unit_slips[i].factor / unit_slips[i].divisor;
			snprintf(fixed, sizeof(fixed), "%s%s", num_format_milli(plain, milli),
				 unit_slips[i].unit);
		} else {
			return;
		}
		if (parse_number(o->type, fixed, &milli) == 0)
			err_add(err, ": did you mean %s?", fixed);
		return;
	}
}

static bool means_unlimited(const char *text)
{
	static const char *const words[] = {"unlimited", "infinity", "inf", "none",
					    "max",	 "-1",	     "off", "no"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return false;
}

static int parse_scalar_number(const struct policy_option *o, const char *text, char *at,
			       struct pale_err *err)
{
	uint64_t value = 0, bound;
	int r;

	if (o->never && strcmp(text, "never") == 0) {
		memcpy(at, &value, sizeof(value));
		return 0;
	}
	r = parse_number(o->type, text, &value);

	if (r == -ERANGE) {
		value = UINT64_MAX; /* and so over every maximum */
	} else if (r < 0) {
		err_set(err, PALE_E_POLICY, "policy", 0, "%s: expected %s, not %s", o->key,
			option_expected(o), QUOTED(text));
		if (o->never && means_unlimited(text))
			err_add(err, ": did you mean never?");
		else if (o->max && means_unlimited(text))
			err_add(err, ": there is always a limit; the most is %s", o->max);
		else
			suggest_unit(o, text, err);
		return -PALE_E_POLICY;
	}
	if (o->min && parse_number(o->type, o->min, &bound) == 0 && value < bound)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: %s is too little: the least is %s", o->key, QUOTED(text),
			       o->min);
	if (o->max && parse_number(o->type, o->max, &bound) == 0 && value > bound)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: %s is too much: the most is %s", o->key, QUOTED(text), o->max);
	memcpy(at, &value, sizeof(value));
	return 0;
}

/* The word's row, or NULL with the message set. */
static const struct option_word *parse_word(const struct policy_option *o, const char *text,
					    struct pale_err *err)
{
	const char *best = NULL;
	size_t distance = strlen(text) < 4 ? 2 : 3;

	for (const struct option_word *w = o->words; w->word; w++)
		if (strcmp(w->word, text) == 0)
			return w;
	err_set(err, PALE_E_POLICY, "policy", 0, "%s: expected %s", o->key,
		o->words[1].word ? "one of " : "");
	for (const struct option_word *w = o->words; w->word; w++) {
		size_t d = str_distance(text, w->word, distance);

		err_add(err, "%s%s", w == o->words ? "" : ", ", w->word);
		if (d < distance) {
			distance = d;
			best = w->word;
		}
	}
	err_add(err, "; not %s", QUOTED(text));
	if (best)
		err_add(err, ": did you mean %s?", best);
	return NULL;
}

/* Checks a text by its row; its form to *ret, which is text or normal. */
static int parse_text(const struct policy_option *o, const char *text, const char **ret,
		      char normal[static OPTION_TEXT_MAX], struct pale_err *err)
{
	bool path = o->type == OPTION_PATH || o->type == OPTION_PATHS;

	*ret = text;
	if (strlen(text) >= (path ? 4096 : OPTION_TEXT_MAX))
		return err_set(err, PALE_E_POLICY, "policy", 0, "%s: too long", o->key);
	if (*text && (!o->valid || o->valid(text)) &&
	    (!o->normal || o->normal(text, normal) == 0)) {
		*ret = o->normal ? normal : text;
		return 0;
	}
	err_set(err, PALE_E_POLICY, "policy", 0, "%s: expected %s", o->key, option_expected(o));
	if (!o->hidden)
		err_add(err, ", not %s", QUOTED(text));
	if (o->hint)
		o->hint(text, err);
	return -PALE_E_POLICY;
}

int option_parse(const struct policy_option *o, const char *text, void *base, struct pale_err *err)
{
	char *at = (char *)base + o->offset, *copy, normal[OPTION_TEXT_MAX];
	const struct option_word *w = NULL;
	const char *form;
	char **texts;
	unsigned bits;
	int r;

	if (o->words) {
		w = parse_word(o, text, err);
		if (!w)
			return -PALE_E_POLICY;
	}
	switch (o->type) {
	case OPTION_VERSION:
		if (strcmp(text, o->def) == 0)
			return 0;
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: expected 1, not %s: Pale %s knows policies of format 1 only",
			       o->key, QUOTED(text), PALE_VERSION);
	case OPTION_SIZE:
	case OPTION_TIME:
	case OPTION_MILLI:
	case OPTION_COUNT: return parse_scalar_number(o, text, at, err);
	case OPTION_WORD: memcpy(at, &w->value, sizeof(w->value)); return 0;
	case OPTION_WORDS:
		memcpy(&bits, at, sizeof(bits));
		bits |= w->value;
		memcpy(at, &bits, sizeof(bits));
		return 0;
	case OPTION_BOOL:
		if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
			break;
		bits = *text == 't' ? BOOL_TRUE : BOOL_FALSE;
		memcpy(at, &bits, sizeof(bits));
		return 0;
	case OPTION_TEXT:
	case OPTION_PATH:
		r = parse_text(o, text, &form, normal, err);
		if (r < 0)
			return r;
		copy = strdup(form);
		if (!copy)
			return err_nomem(err, "policy");
		free((char *)text_of(o, base));
		memcpy(at, &copy, sizeof(copy));
		return 0;
	case OPTION_TEXTS:
	case OPTION_PATHS:
		r = parse_text(o, text, &form, normal, err);
		if (r < 0)
			return r;
		texts = texts_of(o, base);
		for (size_t i = 0; texts && texts[i]; i++) {
			if (strcmp(texts[i], form) == 0)
				return 0;
			if (i + 1 == OPTION_TEXTS_MAX)
				return err_set(err, PALE_E_POLICY, "policy", 0, "%s: more than %d",
					       o->key, OPTION_TEXTS_MAX);
		}
		if (texts_add(&texts, form) < 0)
			return err_nomem(err, "policy");
		memcpy(at, &texts, sizeof(texts));
		return 0;
	case OPTION_GROUP:
	case OPTION_LIST:
	case OPTION_ENV: break;
	}
	return err_set(err, PALE_E_POLICY, "policy", 0, "%s: expected %s, not %s", o->key,
		       option_expected(o), QUOTED(text));
}

void option_format(const struct policy_option *o, const void *base, struct buf *b)
{
	uint64_t value = option_number(o, base);
	char text[NUM_TEXT];

	switch (o->type) {
	case OPTION_SIZE: buf_adds(b, num_format_size(text, value)); break;
	case OPTION_TIME:
		buf_adds(b, o->never && !value ? "never" : num_format_duration(text, value));
		break;
	case OPTION_MILLI: buf_adds(b, num_format_milli(text, value)); break;
	case OPTION_COUNT: buf_addf(b, "%" PRIu64, value); break;
	case OPTION_VERSION: buf_adds(b, o->def); break;
	case OPTION_WORD: buf_adds(b, option_word_of(o->words, (unsigned)value)); break;
	case OPTION_BOOL: buf_adds(b, value == BOOL_TRUE ? "true" : "false"); break;
	case OPTION_TEXT:
	case OPTION_PATH: buf_adds(b, text_of(o, base) ? text_of(o, base) : ""); break;
	case OPTION_TEXTS:
	case OPTION_PATHS:
		for (char **t = texts_of(o, base); t && *t; t++)
			buf_addf(b, "%s%s", t == texts_of(o, base) ? "" : ", ", *t);
		break;
	case OPTION_WORDS:
		for (const struct option_word *w = o->words; w->word; w++)
			if (value & w->value)
				buf_addf(b, "%s%s", b->len ? ", " : "", w->word);
		break;
	case OPTION_GROUP:
	case OPTION_LIST:
	case OPTION_ENV: break;
	}
}
