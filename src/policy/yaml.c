/* A policy as YAML for people: every default written out, in the order of the options table. Any
 * reader of YAML 1.1 or 1.2 takes it for the same policy, and a terminal shows it as it is: what it
 * could obey is escaped. */
#include "policy/policy.h"

#include <string.h>

#include "base/str.h"
#include "policy/model.h"
#include "policy/options.h"

/* Whether readers of any version take the text, without quotes, for the same text or number. */
static bool plain(const char *s)
{
	static const char *const words[] = {"true", "false", "yes", "no", "on",
					    "off",  "null",  "y",   "n",  "~"};
	static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789_/.-";

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasecmp(s, words[i]) == 0)
			return false;
	return *s && *s != '-' && *s != '.' && s[strspn(s, set)] == '\0';
}

static unsigned code_point(const char *s, size_t n)
{
	unsigned c = n == 1 ? (unsigned char)*s : (unsigned char)*s & (0xffu >> (n + 1));

	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3fu);
	return c;
}

/* In double quotes. Characters that str_escape() would not show are \xNN, \uNNNN or \UNNNNNNNN. */
static void add_quoted(struct buf *b, const char *s, size_t len)
{
	buf_adds(b, "\"");
	for (size_t i = 0; i < len;) {
		size_t n = 1;
		char shown[32];
		unsigned c;

		while (i + n < len && ((unsigned char)s[i + n] & 0xc0) == 0x80)
			n++;
		str_escape_into(shown, sizeof(shown), s + i, n);
		c = code_point(s + i, n);
		if (n == 1 && (c == '"' || c == '\\'))
			buf_addf(b, "\\%c", (char)c);
		else if (strlen(shown) == n && memcmp(shown, s + i, n) == 0)
			buf_add(b, s + i, n);
		else if (c <= 0xff)
			buf_addf(b, "\\x%02x", c);
		else
			buf_addf(b, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
		i += n;
	}
	buf_adds(b, "\"");
}

static void add_text(struct buf *b, const char *s)
{
	size_t len = strlen(s);

	if (str_utf8_prefix(s, len) != len) {
		buf_adds(b, "{hex: \"");
		for (size_t i = 0; i < len; i++)
			buf_addf(b, "%02x", (unsigned char)s[i]);
		buf_adds(b, "\"}");
	} else if (plain(s)) {
		buf_adds(b, s);
	} else {
		add_quoted(b, s, len);
	}
}

static void add_value(struct buf *b, const struct policy_option *o, const void *base)
{
	_cleanup_buf_ struct buf value = BUF_INIT(8192);
	char **texts;

	if (o->type == OPTION_TEXTS || o->type == OPTION_PATHS) {
		memcpy(&texts, (const char *)base + o->offset, sizeof(texts));
		buf_adds(b, "[");
		for (size_t i = 0; texts && texts[i]; i++) {
			buf_adds(b, i ? ", " : "");
			add_text(b, texts[i]);
		}
		buf_adds(b, "]");
		return;
	}
	option_format(o, base, &value);
	if (o->type == OPTION_WORDS)
		buf_addf(b, "[%s]", value.len ? value.data : "");
	else if (o->type == OPTION_BOOL)
		buf_adds(b, value.data ? value.data : "");
	else
		add_text(b, value.data ? value.data : "");
	b->failed = b->failed || value.failed;
}

static void add_entry(struct buf *b, const char *indent, const struct option_list *list,
		      const void *row)
{
	size_t n = 0;

	buf_addf(b, "%s- {", indent);
	for (const struct policy_option *o = policy_options; o->key; o++) {
		if (!option_in_group(o, list->entries) || !option_given(o, row))
			continue;
		buf_addf(b, "%s%s: ", n++ ? ", " : "", option_name(o));
		add_value(b, o, row);
	}
	buf_adds(b, "}\n");
}

static void add_list(struct buf *b, const char *indent, const struct option_list *list,
		     const struct policy *p)
{
	_cleanup_free_ void *row = malloc(list->size);
	size_t n = list->count(p);

	buf_adds(b, n ? "\n" : " []\n");
	b->failed = b->failed || !row;
	for (size_t i = 0; row && i < n; i++) {
		memset(row, 0, list->size);
		b->failed = b->failed || list->view(p, i, row) < 0;
		add_entry(b, indent, list, row);
		option_row_done(list, row);
	}
}

int policy_to_yaml(const struct policy *p, char **ret, struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(256u << 20);
	const char *left_out = NULL;

	for (const struct policy_option *o = policy_options; o->key; o++) {
		int indent = 2 * (int)option_depth(o);

		if (strchr(o->key, '[') || !option_shown(o, p))
			continue;
		/* With its members, if none of them has a value. */
		if (indent && o->type == OPTION_GROUP && !option_group_given(o, p)) {
			left_out = o->key;
			continue;
		}
		if (left_out && option_in_group(o, left_out))
			continue;
		buf_addf(&b, "%*s%s:", indent, "", option_name(o));
		if (o->type == OPTION_LIST) {
			add_list(&b, indent ? "    " : "  ", o->list, p);
		} else if (o->type == OPTION_ENV) {
			buf_adds(&b, p->nenv ? "\n" : " {}\n");
			for (size_t i = 0; i < p->nenv; i++) {
				buf_adds(&b, "  ");
				/* `y` and `no` are names of variables, too. */
				add_text(&b, p->env[i].name);
				buf_adds(&b, ": ");
				add_text(&b, p->env[i].value);
				buf_adds(&b, "\n");
			}
		} else if (o->type == OPTION_GROUP) {
			buf_adds(&b, "\n");
		} else {
			buf_adds(&b, " ");
			add_value(&b, o, p);
			buf_adds(&b, "\n");
		}
	}
	if (b.failed)
		return err_nomem(err, "policy");
	*ret = take_ptr(b.data);
	return 0;
}
