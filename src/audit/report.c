/* A run as an HTML page: see report.h. Everything in a log is hostile to whoever opens the page:
 * each text goes through put() or put_raw_text(), which leave neither markup nor control characters
 * nor marks that reorder text; the page has no script and a policy that forbids any. */
#include "report.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "audit/events.h"
#include "audit/format.h"
#include "audit/verify.h"
#include "base/str.h"

#define STAGE	   "audit"
#define MAX_EVENTS 20000u /* beyond that the page says how many it left out */
#define WIDTH	   920.0
#define LABEL	   170.0 /* of a lane of the time line */
#define LANE	   22.0

struct lane {
	const char *name;
	enum audit_severity severity;
	uint64_t n;
};

struct report {
	FILE *to;
	json_t *events; /* array */
	const json_t *start, *end;
	double from, until; /* seconds */
	uint64_t more;
	struct lane lanes[32];
	size_t nlanes;
	uint64_t blocked;
};

static const char style[] =
	":root{--bg:#fff;--fg:#1c1f24;--dim:#667;--line:#dde;--card:#f6f7fa;--blocked:#c62828;"
	"--limit:#b26a00;--error:#7b1fa2;--info:#3f6fb5}"
	"@media(prefers-color-scheme:dark){:root{--bg:#14161a;--fg:#e6e8ec;--dim:#99a;--line:#"
	"2c3038;"
	"--card:#1d2026;--blocked:#ff6b6b;--limit:#ffb74d;--error:#ce93d8;--info:#82b1ff}}"
	"body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;margin:0 "
	"auto;"
	"max-width:960px;padding:24px}h1{font-size:22px;margin:0 0 4px;overflow-wrap:anywhere}"
	"h2{font-size:16px;margin:28px 0 8px}"
	".dim{color:var(--dim)}.cards{display:flex;flex-wrap:wrap;gap:10px;margin:16px 0}"
	".card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:8px "
	"14px;"
	"min-width:96px}.card b{display:block;font-size:19px}"
	"table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid var(--line);"
	"padding:4px 8px;text-align:left;vertical-align:top;overflow-wrap:anywhere}"
	"th{color:var(--dim);font-weight:500}td.n{text-align:right}"
	"code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:var(--card);border:1px "
	"solid "
	"var(--line);border-radius:8px;padding:12px;overflow:auto;max-height:480px}"
	".blocked{color:var(--blocked)}.limit{color:var(--limit)}.error{color:var(--error)}"
	".info{color:var(--info)}svg{display:block;width:100%;height:auto}"
	"svg text{fill:var(--fg);font:12px system-ui,sans-serif}svg .t{fill:var(--dim)}"
	"svg line{stroke:var(--line)}svg .blocked{fill:var(--blocked)}svg .limit{fill:var(--limit)}"
	"svg .error{fill:var(--error)}svg .info{fill:var(--info)}"
	"svg polyline{fill:none;stroke:var(--info);stroke-width:2}summary{cursor:pointer}";

static void put_markup_safe(FILE *to, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		switch (s[i]) {
		case '&': fputs("&amp;", to); break;
		case '<': fputs("&lt;", to); break;
		case '>': fputs("&gt;", to); break;
		case '"': fputs("&quot;", to); break;
		case '\'': fputs("&#39;", to); break;
		default: putc(s[i], to);
		}
}

/* Text on one line: control characters and the like as C escapes, quotes as they are. */
static void put_text(FILE *to, const char *s, size_t len)
{
	for (size_t i = 0; i < len;) {
		_cleanup_buf_ struct buf b = BUF_INIT(64u << 20);
		size_t n = 0;

		while (i + n < len && s[i + n] != '"' && s[i + n] != '\\')
			n++;
		if (n && str_escape(&b, s + i, n) == 0)
			put_markup_safe(to, b.data, b.len);
		i += n;
		if (i < len)
			put_markup_safe(to, s + i++, 1);
	}
}

static void put(FILE *to, const char *s)
{
	put_text(to, s ? s : "", s ? strlen(s) : 0);
}

/* Code: lines and tabs stay. */
static void put_code(FILE *to, const char *s)
{
	while (*s) {
		size_t n = strcspn(s, "\n\t");

		put_text(to, s, n);
		s += n;
		if (*s)
			putc(*s++, to);
	}
}

static void put_value(FILE *to, const json_t *v)
{
	if (json_is_string(v)) {
		put_text(to, json_string_value(v), json_string_length(v));
		return;
	}
	_cleanup_free_ char *text =
		json_dumps(v, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY | JSON_SORT_KEYS);

	put(to, text);
}

static const char *text_at(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static double seconds(const char *time)
{
	struct tm tm = {0};
	const char *end = time ? strptime(time, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	double fraction = 0, unit = 0.1;

	if (!end)
		return 0;
	for (const char *p = *end == '.' ? end + 1 : ""; *p >= '0' && *p <= '9'; p++, unit /= 10)
		fraction += unit * (*p - '0');
	return (double)timegm(&tm) + fraction;
}

static uint64_t times(const json_t *event)
{
	json_int_t n = json_integer_value(json_object_get(event, "count"));

	return n > 0 && n < INT32_MAX ? (uint64_t)n : 1;
}

static int take(void *arg, const json_t *event)
{
	struct report *r = arg;
	const char *name = text_at(event, "event");
	enum audit_severity severity = audit_event_severity(name);
	double at = seconds(text_at(event, "time"));
	size_t i = 0;

	if (severity == AUDIT_BLOCKED)
		r->blocked += times(event);
	if (json_array_size(r->events) >= MAX_EVENTS && strcmp(name, "box.end") != 0) {
		r->more++;
		return 0;
	}
	if (json_array_append(r->events, (json_t *)(uintptr_t)event) < 0)
		return -PALE_E_NOMEM;
	if (strcmp(name, "box.start") == 0)
		r->start = event;
	if (strcmp(name, "box.end") == 0)
		r->end = event;
	if (r->from == 0)
		r->from = at;
	/* What came days later (apply) would squeeze the run into a point. */
	const struct audit_event *known = audit_event_find(name);

	if (known && (known->flags & AUDIT_F_AFTER_END))
		return 0;
	if (at > r->until)
		r->until = at;
	for (; i < r->nlanes; i++)
		if (strcmp(r->lanes[i].name, name) == 0)
			break;
	if (i == r->nlanes && i < ARRAY_SIZE(r->lanes))
		r->lanes[r->nlanes++] = (struct lane){name, severity, 0};
	if (i < r->nlanes)
		r->lanes[i].n += times(event);
	return 0;
}

static double x_of(const struct report *r, const json_t *event)
{
	double span = r->until - r->from, at = seconds(text_at(event, "time")) - r->from;

	if (span <= 0 || at < 0)
		at = 0;
	return LABEL + (span > 0 ? at / span : 0) * (WIDTH - LABEL - 70);
}

static void time_line(const struct report *r)
{
	double height = LANE * (double)r->nlanes + 24, span = r->until - r->from;
	size_t i;
	json_t *event;

	fprintf(r->to, "<h2>Time line</h2><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\">", WIDTH,
		height);
	for (i = 0; i < r->nlanes; i++) {
		double y = LANE * (double)i + LANE / 2;

		fprintf(r->to,
			"<line x1=\"%.0f\" y1=\"%.1f\" x2=\"%.0f\" y2=\"%.1f\"/><text x=\"0\" "
			"y=\"%.1f\">",
			LABEL, y, WIDTH - 60, y, y + 4);
		put(r->to, r->lanes[i].name);
		fprintf(r->to, "</text><text class=\"t\" x=\"%.0f\" y=\"%.1f\">%lu</text>",
			WIDTH - 50, y + 4, r->lanes[i].n);
	}
	json_array_foreach(r->events, i, event)
	{
		const char *name = text_at(event, "event");

		for (size_t k = 0; k < r->nlanes; k++) {
			if (strcmp(r->lanes[k].name, name) != 0)
				continue;
			fprintf(r->to,
				"<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>+%.3f "
				"s</title>"
				"</circle>",
				audit_severity_name(r->lanes[k].severity), x_of(r, event),
				LANE * (double)k + LANE / 2,
				seconds(text_at(event, "time")) - r->from);
		}
	}
	fprintf(r->to,
		"<text class=\"t\" x=\"%.0f\" y=\"%.0f\">0 s</text><text class=\"t\" x=\"%.0f\" "
		"y=\"%.0f\">"
		"%.3f s</text></svg>",
		LABEL, height - 6, WIDTH - 130, height - 6, span);
}

/* A curve of one figure of the usage samples; nothing with fewer than two. */
static void curve(const struct report *r, const char *key, const char *title, double scale,
		  const char *unit)
{
	double most = 0;
	size_t i, n = 0;
	json_t *event;

	json_array_foreach(r->events, i, event)
	{
		const json_t *v = json_object_get(event, key);

		if (strcmp(text_at(event, "event"), "usage") != 0 || !json_is_integer(v))
			continue;
		n++;
		if ((double)json_integer_value(v) > most)
			most = (double)json_integer_value(v);
	}
	if (n < 2 || most <= 0)
		return;
	fprintf(r->to,
		"<h2>%s</h2><svg viewBox=\"0 0 %.0f 120\" role=\"img\"><line x1=\"%.0f\" "
		"y1=\"110\" "
		"x2=\"%.0f\" y2=\"110\"/><text class=\"t\" x=\"0\" y=\"16\">%.1f "
		"%s</text><polyline "
		"points=\"",
		title, WIDTH, LABEL, WIDTH - 60, most / scale, unit);
	json_array_foreach(r->events, i, event)
	{
		const json_t *v = json_object_get(event, key);

		if (strcmp(text_at(event, "event"), "usage") == 0 && json_is_integer(v))
			fprintf(r->to, "%.1f,%.1f ", x_of(r, event),
				110 - 100 * (double)json_integer_value(v) / most);
	}
	fprintf(r->to, "\"/></svg>");
}

static void card(const struct report *r, const char *label, const char *class, const char *fmt, ...)
	_printf_(4, 5);
static void card(const struct report *r, const char *label, const char *class, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(r->to, "<div class=\"card\"><b class=\"%s\">", class);
	put(r->to, text);
	fprintf(r->to, "</b><span class=\"dim\">%s</span></div>", label);
}

static void cards(const struct report *r)
{
	const json_t *usage = json_object_get(r->end, "usage");
	const char *outcome = text_at(r->end, "outcome");
	static const struct {
		const char *key, *label, *unit;
		double scale;
	} rows[] = {
		{"wall_ms", "wall time", "s", 1000},
		{"cpu_ms", "cpu time", "s", 1000},
		{"memory_peak_bytes", "peak memory", "MiB", 1048576},
		{"disk_bytes", "disk", "MiB", 1048576},
	};

	fprintf(r->to, "<div class=\"cards\">");
	card(r, "outcome", outcome && strcmp(outcome, "exit") == 0 ? "" : "limit", "%s",
	     outcome ? outcome : "no end yet");
	if (json_is_integer(json_object_get(r->end, "status")))
		card(r, "exit status", "", "%" JSON_INTEGER_FORMAT,
		     json_integer_value(json_object_get(r->end, "status")));
	card(r, "blocked attempts", r->blocked ? "blocked" : "", "%lu", r->blocked);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (json_is_integer(json_object_get(usage, rows[i].key)))
			card(r, rows[i].label, "", "%.2f %s",
			     (double)json_integer_value(json_object_get(usage, rows[i].key)) /
				     rows[i].scale,
			     rows[i].unit);
	if (json_is_integer(json_object_get(usage, "processes_peak")))
		card(r, "most processes", "", "%" JSON_INTEGER_FORMAT,
		     json_integer_value(json_object_get(usage, "processes_peak")));
	fprintf(r->to, "</div>");
}

static bool own_key(const char *key)
{
	static const char *const common[] = {"seq", "time", "run", "stage", "event", "prev"};

	for (size_t i = 0; i < ARRAY_SIZE(common); i++)
		if (strcmp(key, common[i]) == 0)
			return false;
	return true;
}

/* Rows of events; only those worth a second look, or all. */
static void table(const struct report *r, bool all)
{
	size_t i;
	json_t *event, *value;
	const char *key;

	fprintf(r->to, "<table><tr><th>at<th>event<th>times<th>what</tr>");
	json_array_foreach(r->events, i, event)
	{
		const char *name = text_at(event, "event");
		enum audit_severity severity = audit_event_severity(name);

		if (!all && severity == AUDIT_INFO)
			continue;
		fprintf(r->to, "<tr><td>+%.3f<td class=\"%s\">",
			seconds(text_at(event, "time")) - r->from, audit_severity_name(severity));
		put(r->to, name);
		fprintf(r->to, "<td class=\"n\">%lu<td><code>", times(event));
		json_object_foreach(event, key, value)
		{
			if (!own_key(key) || strcmp(key, "count") == 0 ||
			    (all && (strcmp(key, "code") == 0 || strcmp(key, "blocked") == 0)))
				continue;
			fputs("<span class=\"dim\">", r->to);
			put(r->to, key);
			fputs("</span>=", r->to);
			put_value(r->to, value);
			fputs(" ", r->to);
		}
		fputs("</code></tr>\n", r->to);
	}
	fprintf(r->to, "</table>");
}

static void head(const struct report *r, const char *id)
{
	const json_t *argv = json_object_get(r->start, "argv"), *word;
	char local[AUDIT_LOCAL_TIME];
	size_t i;

	fprintf(r->to,
		"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta "
		"http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
		"'unsafe-inline'\"><meta name=\"viewport\" "
		"content=\"width=device-width\"><title>Pale run "
		"%s</title><style>%s</style>\n<h1>",
		id, style);
	json_array_foreach((json_t *)(uintptr_t)argv, i, word)
	{
		if (i >= 12) {
			fputs(" ...", r->to);
			break;
		}
		fputs(i ? " " : "", r->to);
		const char *w = json_string_value(word);

		put_text(r->to, w ? w : "", w ? strnlen(w, 120) : 0);
	}
	fprintf(r->to, "</h1><div class=\"dim\">run %s &middot; started ", id);
	put(r->to, audit_local_time(text_at(r->start, "time"), local));
	for (i = 0; i < 3; i++) {
		static const char *const keys[] = {"user", "policy_name", "cwd"};
		static const char *const words[] = {"by", "policy", "in"};
		const char *v = text_at(r->start, keys[i]);

		if (!v || !*v)
			continue;
		fprintf(r->to, " &middot; %s ", words[i]);
		put_text(r->to, v, strnlen(v, 200));
	}
	fputs("</div>", r->to);
	if (text_at(r->end, "summary")) {
		fputs("<p>", r->to);
		put(r->to, text_at(r->end, "summary"));
		fputs("</p>", r->to);
	}
}

static void free_json(json_t **j)
{
	json_decref(*j);
}

int audit_report_html(FILE *to, const char *id, struct pale_err *err)
{
	_cleanup_(free_json) json_t *events = json_array();
	struct report r = {.to = to, .events = events};
	struct audit_verdict v;
	int code = audit_verify(id, NULL, &v, err);

	if (code < 0)
		return code;
	/* A damaged log still makes a page, of the lines before. */
	code = audit_read(id, take, &r, err);
	if (code < 0 && v.state != AUDIT_LOG_BROKEN)
		return code == -PALE_E_NOMEM ? err_nomem(err, STAGE) : code;
	head(&r, id);
	cards(&r);
	if (v.state == AUDIT_LOG_BROKEN) {
		fputs("<p class=\"blocked\"><b>The log was altered:</b> ", to);
		put(to, v.what);
		fputs("</p>", to);
	}
	fputs("<h2>Blocked, and limits hit</h2>", to);
	if (r.blocked || json_array_size(events))
		table(&r, false);
	time_line(&r);
	curve(&r, "memory_bytes", "Memory", 1048576, "MiB");
	curve(&r, "processes", "Processes", 1, "");
	if (text_at(r.start, "code")) {
		fputs("<h2>Code</h2><pre>", to);
		put_code(to, text_at(r.start, "code"));
		fputs("</pre>", to);
	}
	fprintf(to, "<h2>Events</h2><details><summary>all %zu</summary>", json_array_size(events));
	table(&r, true);
	if (r.more)
		fprintf(to, "<p>%lu more are in the log.</p>", r.more);
	fprintf(to,
		"</details><h2>The log</h2><p class=\"dim\">%lu lines; %s; head <code>%s</code>. "
		"Check it with "
		"<code>pale audit verify %s --head %s</code>.</p></html>\n",
		v.lines,
		v.state == AUDIT_LOG_BROKEN   ? "altered"
		: v.state == AUDIT_LOG_SEALED ? "chain and seal hold"
					      : "not ended yet; its lines so far hold",
		v.head, id, v.head);
	return ferror(to) ? err_set(err, PALE_E_SYSTEM, STAGE, errno, "writing the report") : 0;
}
