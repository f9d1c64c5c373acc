/* One run as people read it: see show.h. Every text from a log is hostile and escaped. */
#include "show.h"

#include <inttypes.h>
#include <string.h>

#include "audit/blocked.h"
#include "audit/events.h"
#include "audit/format.h"
#include "base/str.h"

struct show {
	FILE *out;
	const struct audit_show *how;
	uint64_t shown;
	struct blocked_table *table; /* what was blocked, as a table */
};

static void put_text(FILE *out, const char *label, const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1u << 20);

	if (text && *text && str_escape(&b, text, strlen(text)) == 0)
		fprintf(out, "%-9s %s\n", label, b.data);
}

/* Code keeps its lines: each is escaped by itself. */
static void put_code(FILE *out, const char *code)
{
	unsigned lines = 0;

	for (const char *p = code; *p && lines < 40; lines++) {
		size_t n = strcspn(p, "\n");
		_cleanup_buf_ struct buf b = BUF_INIT(1u << 16);
		char expanded[512];
		size_t used = 0;

		for (size_t i = 0; i < n && used + 9 < sizeof(expanded); i++) {
			if (p[i] != '\t')
				expanded[used++] = p[i];
			else
				do
					expanded[used++] = ' ';
				while (used % 8);
		}
		/* Quotes and backslashes are code here, not the ends of a quoted text. */
		for (size_t i = 0; i < used;) {
			size_t m = strcspn(expanded + i, "\"\\");

			if (m > used - i)
				m = used - i;
			str_escape(&b, expanded + i, m);
			i += m;
			if (i < used)
				buf_add(&b, expanded + i++, 1);
		}
		fprintf(out, "          | %s\n", b.data ? b.data : "");
		p += n + (p[n] == '\n');
		if (*p && lines == 39)
			fprintf(out, "          | ... (all of it: --json)\n");
	}
}

static void put_json(FILE *out, const char *label, const json_t *v)
{
	if (json_is_string(v)) {
		put_text(out, label, json_string_value(v));
		return;
	}
	_cleanup_free_ char *text =
		v ? json_dumps(v, JSON_ENSURE_ASCII | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

	for (char *p = text; p && *p; p++)
		if (*p == 0x7f)
			*p = '?';
	if (text)
		fprintf(out, "%-9s %s\n", label, text);
}

/* As it was typed, more or less; the code, which has a place of its own, is not repeated. */
static void put_command(FILE *out, const json_t *event)
{
	const json_t *argv = json_object_get(event, "argv"), *word;
	const char *code = json_string_value(json_object_get(event, "code"));
	size_t i;

	if (!json_array_size(argv))
		return;
	fprintf(out, "%-9s", "command");
	json_array_foreach((json_t *)(uintptr_t)argv, i, word)
	{
		_cleanup_buf_ struct buf b = BUF_INIT(8u << 20);
		const char *w = json_string_value(word);
		size_t n = json_string_length(word);
		bool plain = n > 0;

		for (size_t k = 0; plain && k < n; k++)
			plain = w[k] > ' ' && w[k] < 0x7f &&
				!strchr("\"'\\$`;&|<>()*?[]{}!#~", w[k]);
		if (w && code && *code && strcmp(w, code) == 0)
			fprintf(out, " (the code)");
		else if (w && str_escape(&b, w, n) == 0)
			fprintf(out, plain ? " %s" : " \"%s\"", b.data ? b.data : "");
	}
	fputc('\n', out);
}

static void put_usage(FILE *out, const json_t *usage)
{
	static const char *const units[] = {"ms", "bytes"};
	const char *key;
	json_t *v;
	bool any = false;

	json_object_foreach((json_t *)(uintptr_t)usage, key, v)
	{
		const char *unit = "";
		char name[48];
		json_int_t n = json_integer_value(v);

		if (!json_is_integer(v))
			continue;
		str_escape_into(name, sizeof(name), key, strlen(key));
		for (size_t i = 0; i < ARRAY_SIZE(units); i++)
			if (str_ends(name, units[i]) && strlen(name) > strlen(units[i]) + 1) {
				name[strlen(name) - strlen(units[i]) - 1] = '\0';
				unit = units[i];
			}
		for (char *p = name; *p; p++)
			if (*p == '_')
				*p = ' ';
		fprintf(out, "%s%s ", any ? ", " : "used      ", name);
		any = true;
		if (strcmp(unit, "bytes") == 0 && n >= 1024)
			fprintf(out, "%.1f MiB", (double)n / 1048576);
		else
			fprintf(out, "%" JSON_INTEGER_FORMAT "%s%s", n, *unit ? " " : "", unit);
	}
	if (any)
		fputc('\n', out);
}

static void put_start(FILE *out, const json_t *event)
{
	put_json(out, "run", json_object_get(event, "run"));
	char local[AUDIT_LOCAL_TIME];
	const char *time = json_string_value(json_object_get(event, "time"));

	fprintf(out, "%-9s %s\n", "started", audit_local_time(time, local));
	put_json(out, "by", json_object_get(event, "user"));
	put_json(out, "in", json_object_get(event, "cwd"));
	put_command(out, event);
	const char *code = json_string_value(json_object_get(event, "code"));

	if (code && *code) {
		fprintf(out, "code\n");
		put_code(out, code);
	}
}

static void put_end(FILE *out, const json_t *event, bool colour)
{
	const char *outcome = json_string_value(json_object_get(event, "outcome"));
	const json_t *status = json_object_get(event, "status");
	bool fine = outcome && strcmp(outcome, "exit") == 0;
	char text[64];

	str_escape_into(text, sizeof(text), outcome ? outcome : "?", outcome ? strlen(outcome) : 1);
	fprintf(out, "%-9s %s%s%s", "outcome",
		audit_colour_on(fine ? AUDIT_INFO : AUDIT_LIMIT, colour), text,
		audit_colour_off(colour));
	if (json_is_integer(status))
		fprintf(out, " (status %" JSON_INTEGER_FORMAT ")", json_integer_value(status));
	fputc('\n', out);
	put_json(out, "summary", json_object_get(event, "summary"));
	put_json(out, "error", json_object_get(event, "error"));
	put_usage(out, json_object_get(event, "usage"));
}

static int put_event(const struct show *s, const json_t *event)
{
	FILE *out = s->out;
	_cleanup_buf_ struct buf b = BUF_INIT(2u << 20);
	int r;

	if (s->how->json) {
		r = json_dumpf(event, out, JSON_COMPACT | JSON_ENSURE_ASCII);
		return r < 0 || fputc('\n', out) == EOF ? -PALE_E_SYSTEM : 0;
	}
	r = audit_format_event(&b, event, s->how->colour, s->how->width);
	if (r < 0)
		return -PALE_E_NOMEM;
	fprintf(out, "%s\n", b.data);
	return 0;
}

static int show_event(void *arg, const json_t *event)
{
	struct show *s = arg;
	const struct audit_show *how = s->how;
	FILE *out = s->out;
	const char *name = json_string_value(json_object_get(event, "event"));
	enum audit_severity severity = audit_event_severity(name);
	bool notable = severity != AUDIT_INFO;

	if (how->json || how->events || how->blocked) {
		if (how->blocked && !notable)
			return 0;
		s->shown++;
		if (!s->table)
			return put_event(s, event);
		blocked_add(s->table, event);
		return 0;
	}
	if (strcmp(name, "box.start") == 0)
		put_start(out, event);
	else if (strcmp(name, "box.end") == 0)
		put_end(out, event, how->colour);
	else if ((strcmp(name, "session.ready") == 0 || strcmp(name, "session.claimed") == 0) &&
		 json_is_string(json_object_get(event, "name")))
		put_json(out, "session", json_object_get(event, "name"));
	else if (notable || strcmp(name, "policy.widened") == 0 ||
		 strcmp(name, "network.changed") == 0 || strcmp(name, "best_effort.used") == 0 ||
		 strcmp(name, "workspace.captured") == 0 || strcmp(name, "apply.done") == 0 ||
		 strcmp(name, "collect.done") == 0)
		return put_event(s, event);
	return 0;
}

int audit_show(const char *id, const struct audit_show *how, FILE *to, uint64_t *ret_shown,
	       struct pale_err *err)
{
	_cleanup_free_ struct blocked_table *table = NULL;
	struct show s = {.out = to, .how = how};
	int r;

	if (how->blocked && !how->events && !how->json) {
		s.table = table = blocked_new();
		if (!table)
			return err_nomem(err, "audit");
	}
	r = audit_read(id, show_event, &s, err);
	if (r < 0)
		return r;
	if (table)
		blocked_print(table, to, how->colour, how->width);
	*ret_shown = s.shown;
	return 0;
}
