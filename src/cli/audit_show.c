/* pale audit show, pale audit tail: one run as people read it, and runs as they happen. Runs with
 * the caller's privileges outside any box; every text from a log is hostile and escaped. */
#include "cli/audit.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>

#include "audit/events.h"
#include "audit/format.h"
#include "audit/lines.h"
#include "audit/state.h"
#include "audit/summary.h"
#include "audit/ulid.h"
#include "base/fd.h"
#include "base/str.h"

bool cli_started_before(const char *id, const char *since)
{
	uint64_t ms = ulid_ms(id);
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	char text[40];

	gmtime_r(&s, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + 19, sizeof(text) - 19, ".%03uZ", (unsigned)(ms % 1000));
	return strcmp(text, since) < 0;
}

/* show */

enum { OPT_EVENTS = 1, OPT_BLOCKED, OPT_JSON };
static const struct cli_option show_options[] = {
	{OPT_EVENTS, 0, "events", NULL, "every event, one a line"},
	{OPT_BLOCKED, 0, "blocked", NULL,
	 "only what was blocked and the limits hit: a short table, or with --events each event"},
	{OPT_JSON, 0, "json", NULL, "the events as JSON lines"},
	{0},
};

static int show_run(int argc, char **argv);
const struct cli_command cli_audit_show_command = {
	.name = "audit show",
	.summary = "show what one run did",
	.usage = "[OPTION...] [RUN]",
	.help = "Shows a run (the last without RUN): what was asked, how it ended, what it used, "
		"and what was\n"
		"blocked.\n"
		"\n"
		"  pale audit show last --blocked\n"
		"  pale audit show 01k9 --events",
	.options = show_options,
	.run = show_run,
};

struct show {
	bool events, blocked, json, colour;
	size_t width;
	uint64_t shown;
	struct cli_blocked *table; /* --blocked alone */
};

static void put_text(const char *label, const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1u << 20);

	if (text && *text && str_escape(&b, text, strlen(text)) == 0)
		printf("%-9s %s\n", label, b.data);
}

/* Code keeps its lines: each is escaped by itself. */
static void put_code(const char *code)
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
		printf("          | %s\n", b.data ? b.data : "");
		p += n + (p[n] == '\n');
		if (*p && lines == 39)
			printf("          | ... (all of it: --json)\n");
	}
}

static void put_json(const char *label, const json_t *v)
{
	if (json_is_string(v)) {
		put_text(label, json_string_value(v));
		return;
	}
	_cleanup_free_ char *text =
		v ? json_dumps(v, JSON_ENSURE_ASCII | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

	for (char *p = text; p && *p; p++)
		if (*p == 0x7f)
			*p = '?';
	if (text)
		printf("%-9s %s\n", label, text);
}

/* As it was typed, more or less; the code, which has a place of its own, is not repeated. */
static void put_command(const json_t *event)
{
	const json_t *argv = json_object_get(event, "argv"), *word;
	const char *code = json_string_value(json_object_get(event, "code"));
	size_t i;

	if (!json_array_size(argv))
		return;
	printf("%-9s", "command");
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
			printf(" (the code)");
		else if (w && str_escape(&b, w, n) == 0)
			printf(plain ? " %s" : " \"%s\"", b.data ? b.data : "");
	}
	putchar('\n');
}

static void put_usage(const json_t *usage)
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
		printf("%s%s ", any ? ", " : "used      ", name);
		any = true;
		if (strcmp(unit, "bytes") == 0 && n >= 1024)
			printf("%.1f MiB", (double)n / 1048576);
		else
			printf("%" JSON_INTEGER_FORMAT "%s%s", n, *unit ? " " : "", unit);
	}
	if (any)
		putchar('\n');
}

static void put_start(const json_t *event)
{
	put_json("run", json_object_get(event, "run"));
	char local[AUDIT_LOCAL_TIME];
	const char *time = json_string_value(json_object_get(event, "time"));

	printf("%-9s %s\n", "started", audit_local_time(time, local));
	put_json("by", json_object_get(event, "user"));
	put_json("in", json_object_get(event, "cwd"));
	put_command(event);
	const char *code = json_string_value(json_object_get(event, "code"));

	if (code && *code) {
		printf("code\n");
		put_code(code);
	}
}

static void put_end(const json_t *event, bool colour)
{
	const char *outcome = json_string_value(json_object_get(event, "outcome"));
	const json_t *status = json_object_get(event, "status");
	bool fine = outcome && strcmp(outcome, "exit") == 0;
	char text[64];

	str_escape_into(text, sizeof(text), outcome ? outcome : "?", outcome ? strlen(outcome) : 1);
	printf("%-9s %s%s%s", "outcome", audit_colour_on(fine ? AUDIT_INFO : AUDIT_LIMIT, colour),
	       text, audit_colour_off(colour));
	if (json_is_integer(status))
		printf(" (status %" JSON_INTEGER_FORMAT ")", json_integer_value(status));
	putchar('\n');
	put_json("summary", json_object_get(event, "summary"));
	put_json("error", json_object_get(event, "error"));
	put_usage(json_object_get(event, "usage"));
}

static int put_event(const struct show *s, const json_t *event)
{
	_cleanup_buf_ struct buf b = BUF_INIT(2u << 20);
	int r;

	if (s->json) {
		r = json_dumpf(event, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
		return r < 0 || putchar('\n') == EOF ? -PALE_E_SYSTEM : 0;
	}
	r = audit_format_event(&b, event, s->colour, s->width);
	if (r < 0)
		return -PALE_E_NOMEM;
	printf("%s\n", b.data);
	return 0;
}

static int show_event(void *arg, const json_t *event)
{
	struct show *s = arg;
	const char *name = json_string_value(json_object_get(event, "event"));
	enum audit_severity severity = audit_event_severity(name);
	bool notable = severity != AUDIT_INFO;

	if (s->json || s->events || s->blocked) {
		if (s->blocked && !notable)
			return 0;
		s->shown++;
		if (!s->table)
			return put_event(s, event);
		cli_blocked_add(s->table, event);
		return 0;
	}
	if (strcmp(name, "box.start") == 0)
		put_start(event);
	else if (strcmp(name, "box.end") == 0)
		put_end(event, s->colour);
	else if (notable || strcmp(name, "policy.widened") == 0 ||
		 strcmp(name, "best_effort.used") == 0 || strcmp(name, "workspace.captured") == 0 ||
		 strcmp(name, "apply.done") == 0 || strcmp(name, "collect.done") == 0)
		return put_event(s, event);
	return 0;
}

static int show_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_audit_show_command, argc, argv);
	struct show s = {.colour = cli_colour(stdout), .width = cli_width(stdout)};
	struct pale_err err = {0};
	char run[AUDIT_ID_SIZE];
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_EVENTS: s.events = true; break;
		case OPT_BLOCKED: s.blocked = true; break;
		case OPT_JSON: s.json = true; break;
		}
	if (id < 0)
		return args.status;
	if (args.argc > 1)
		return cli_usage("audit show", "one run at a time: %s", QUOTED(args.argv[1]));
	cli_audit_recover();
	if (audit_find(args.argc ? args.argv[0] : "last", run, &err) < 0)
		return cli_fail(&err);
	_cleanup_free_ struct cli_blocked *table =
		s.blocked && !s.events && !s.json ? cli_blocked_new() : NULL;

	s.table = table;
	if (audit_read(run, show_event, &s, &err) < 0)
		return err.code ? cli_fail(&err) : CLI_EXIT_PALE;
	if (table)
		cli_blocked_print(table, s.colour, s.width);
	if (s.blocked && !s.shown && !s.json)
		fprintf(stderr, "nothing was blocked\n");
	return cli_flushed(0);
}

/* tail */

enum { OPT_FOLLOW = 1, OPT_TJSON };
static const struct cli_option tail_options[] = {
	{OPT_FOLLOW, 'f', "follow", NULL,
	 "go on as events happen; without RUN, in all live and new runs"},
	{OPT_TJSON, 0, "json", NULL, "the events as JSON lines"},
	{0},
};

static int tail_run(int argc, char **argv);
const struct cli_command cli_audit_tail_command = {
	.name = "audit tail",
	.summary = "show the last events of a run, or follow runs",
	.usage = "[-f] [RUN]",
	.help = "Shows the last ten events of a run (without RUN: the last). With -f, follows it "
		"to its end;\n"
		"with -f and no RUN, follows every live run, and those that start meanwhile, until "
		"Ctrl-C.",
	.options = tail_options,
	.run = tail_run,
};

enum { TAILS = 256, LAST = 10 };

struct tail {
	char id[AUDIT_ID_SIZE];
	int log, watch;
	bool ended;
	struct log_lines lines;
};

struct follow {
	struct show show;
	struct tail tails[TAILS];
	size_t n;
	bool many;
	int inotify;
	struct audit_state state;
};

/* Prints what is new; from the end of the file backwards only by leaving out the first lines. */
static int drain(struct follow *f, struct tail *t, bool print)
{
	const char *text;
	size_t len;
	int r;

	while ((r = log_next(&t->lines, &text, &len)) > 0) {
		_cleanup_line_ struct chain_line line = {0};

		if (chain_parse(text, len, &line)) {
			fprintf(stderr, "pale: run %s: its log is damaged\n", t->id);
			t->ended = true;
			return 0;
		}
		t->ended |= strcmp(line.event, "box.end") == 0;
		if (!print)
			continue;
		if (f->many && !f->show.json)
			printf("%.10s  ", t->id);
		if (put_event(&f->show, line.object) < 0)
			return -1;
	}
	return r;
}

static int add_tail(struct follow *f, const char *id, struct pale_err *err)
{
	struct tail *t = NULL;
	char path[4200];

	for (size_t i = 0; i < f->n; i++) {
		if (strcmp(f->tails[i].id, id) == 0)
			return 0;
		if (f->tails[i].log < 0)
			t = &f->tails[i];
	}
	if (!t) {
		if (f->n == TAILS)
			return 0;
		t = &f->tails[f->n++];
	}
	*t = (struct tail){.log = -1, .watch = -1};
	snprintf(t->id, sizeof(t->id), "%s", id);
	int r = audit_state_run(&f->state, id, O_RDONLY, NULL, &t->log, err);

	if (r < 0) {
		t->id[0] = '\0';
		return r;
	}
	t->lines = LOG_LINES(t->log);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->log);
	if (f->inotify >= 0)
		t->watch = inotify_add_watch(f->inotify, path, IN_MODIFY);
	return 0;
}

static void drop_tail(struct follow *f, struct tail *t)
{
	if (t->watch >= 0)
		inotify_rm_watch(f->inotify, t->watch);
	close_fd(&t->log);
	log_lines_done(&t->lines);
}

static void follow_done(struct follow *f)
{
	for (size_t i = 0; i < f->n; i++)
		drop_tail(f, &f->tails[i]);
	close_fd(&f->inotify);
	audit_state_done(&f->state);
}

/* The last LAST lines of a run: its lines are counted first. */
static int print_last(struct follow *f, struct tail *t)
{
	struct log_lines count = LOG_LINES(t->log);
	const char *text;
	size_t len;
	uint64_t n = 0;
	int r = 0;

	while (log_next(&count, &text, &len) > 0)
		n++;
	log_lines_done(&count);
	for (; n > LAST && r >= 0; n--)
		r = log_next(&t->lines, &text, &len);
	return r < 0 ? r : drain(f, t, true);
}

/* Waits for changes; a second is the longest, since the first line of a run that has just been made
 * may come before our watch. */
static int follow_on(struct follow *f)
{
	char events[4096] __attribute__((aligned(8)));

	for (;;) {
		struct pollfd p = {.fd = f->inotify, .events = POLLIN};
		bool any = false;

		if (f->many) {
			char(*ids)[AUDIT_ID_SIZE];
			size_t n;

			if (audit_state_list_active(&f->state, &ids, &n) < 0)
				return -1;
			for (size_t i = 0; i < n; i++)
				(void)!add_tail(f, ids[i], NULL);
			free(ids);
		}
		for (size_t i = 0; i < f->n; i++) {
			struct tail *t = &f->tails[i];

			if (t->log < 0)
				continue;
			if (drain(f, t, true) < 0)
				return -1;
			if (t->ended)
				drop_tail(f, t);
			else
				any = true;
		}
		if (fflush(stdout) != 0)
			return -1;
		if (!any && !f->many)
			return 0;
		if (poll(&p, 1, 1000) < 0 && errno != EINTR)
			return -1;
		while (read(f->inotify, events, sizeof(events)) > 0)
			;
	}
}

static int tail_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_audit_tail_command, argc, argv);
	_cleanup_(follow_done) struct follow f = {
		.show = {.colour = cli_colour(stdout), .width = cli_width(stdout)},
		.inotify = -1,
		.state = AUDIT_STATE_NONE,
	};
	struct pale_err err = {0};
	char run[AUDIT_ID_SIZE];
	bool follow = false;
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_FOLLOW: follow = true; break;
		case OPT_TJSON: f.show.json = true; break;
		}
	if (id < 0)
		return args.status;
	if (args.argc > 1)
		return cli_usage("audit tail", "one run at a time: %s", QUOTED(args.argv[1]));
	f.many = follow && !args.argc;
	if (f.many && f.show.width > 12)
		f.show.width -= 12;
	cli_audit_recover();
	if (audit_state_open(&f.state, &err) < 0)
		return cli_fail(&err);
	if (follow) {
		char active[4200];

		snprintf(active, sizeof(active), "%s/active", f.state.path);
		f.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		if (f.inotify < 0 || (f.many && inotify_add_watch(f.inotify, active,
								  IN_CREATE | IN_MOVED_FROM) < 0)) {
			err_set(&err, PALE_E_SYSTEM, "audit", errno, "watching the logs");
			return cli_fail(&err);
		}
	}
	if (!f.many) {
		if (audit_find(args.argc ? args.argv[0] : "last", run, &err) < 0 ||
		    add_tail(&f, run, &err) < 0)
			return cli_fail(&err);
		if (print_last(&f, &f.tails[0]) < 0)
			return cli_flushed(CLI_EXIT_PALE);
		if (!follow || f.tails[0].ended)
			return cli_flushed(0);
	}
	return cli_flushed(follow_on(&f) < 0 ? CLI_EXIT_PALE : 0);
}
