/* pale audit: lists, checks, exports and prunes the logs of runs. Runs with the caller's privileges
 * and outside any box; what it shows may come from a box and is escaped. Showing and following
 * single runs is in audit_show.c. */
#include "cli/audit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "audit/events.h"
#include "audit/export.h"
#include "audit/format.h"
#include "audit/index.h"
#include "audit/prune.h"
#include "audit/state.h"
#include "audit/verify.h"
#include "base/num.h"
#include "base/str.h"
#include "confine/cgroup.h"

static int kill_left(void *arg, const char *id, struct pale_err *err)
{
	struct cgroup_host host;

	(void)arg;
	cgroup_probe(&host);
	return cgroup_recover(&host, id, err);
}

void cli_audit_recover(void)
{
	struct pale_err err = {0};

	if (audit_recover(kill_left, NULL, &err) < 0)
		fprintf(stderr, "pale: %s: %s\n", err.stage, err.message);
}

size_t cli_width(FILE *f)
{
	struct winsize w;

	if (!isatty(fileno(f)))
		return 0;
	return ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 80;
}

int cli_flushed(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "pale: writing to stdout: %s\n", strerror(errno));
	return CLI_EXIT_PALE;
}

static void index_done(struct audit_index **ix)
{
	audit_index_free(*ix);
}
#define _cleanup_index_ _cleanup_(index_done)

/* list */

enum { OPT_SINCE = 1, OPT_OUTCOME, OPT_EVENT, OPT_JSON, OPT_N };
static const struct cli_option list_options[] = {
	{OPT_SINCE, 0, "since", "TIME", "runs started since then: 1h, 30d, 2026-01-31"},
	{OPT_OUTCOME, 0, "outcome", "OUTCOME",
	 "only runs that ended so: exit, signal, memory, \"wall time\", running ..."},
	{OPT_EVENT, 0, "event", "NAME", "only runs with this event (network.blocked ...)"},
	{OPT_N, 'n', "number", "N", "at most N runs, the newest (default 50; 0: all)"},
	{OPT_JSON, 0, "json", NULL, "one JSON object a run"},
	{0},
};

struct list_out {
	bool json, colour;
	size_t width, n;
};

static void print_duration(char out[static 32], int64_t ms)
{
	if (ms < 0)
		snprintf(out, 32, "-");
	else if (ms < 1000)
		snprintf(out, 32, "%d ms", (int)ms);
	else if (ms < 600000)
		snprintf(out, 32, "%.1f s", (double)ms / 1000);
	else
		snprintf(out, 32, "%lld min", (long long)ms / 60000);
}

static json_t *text_or_null(const char *s)
{
	return s ? audit_text(s, strlen(s), 4096) : json_null();
}

static int list_json(const struct audit_row *r)
{
	json_t *o = json_pack(
		"{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:b, s:b, s:b, s:o, s:o, s:o}",
		"id", r->id, "started", text_or_null(r->started), "ended", text_or_null(r->ended),
		"outcome", text_or_null(r->outcome), "status",
		r->status < 0 ? json_null() : json_integer(r->status), "wall_ms",
		r->wall_ms < 0 ? json_null() : json_integer(r->wall_ms), "blocked",
		(json_int_t)r->blocked, "limits", (json_int_t)r->limits, "errors",
		(json_int_t)r->errors, "lines", (json_int_t)r->lines, "unapplied", r->unapplied,
		"live", r->live, "lost", r->lost, "command", text_or_null(r->command), "policy",
		text_or_null(r->policy), "damaged", text_or_null(r->damaged));
	int failed = !o || json_dumpf(o, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) < 0 ||
		     putchar('\n') == EOF;

	json_decref(o);
	return failed ? -PALE_E_SYSTEM : 0;
}

static int list_row(void *arg, const struct audit_row *r)
{
	struct list_out *o = arg;
	char started[AUDIT_LOCAL_TIME], wall[32], outcome[32], command[512], blocked[24] = "-";

	if (o->json)
		return list_json(r);
	if (o->n++ == 0)
		printf("%-26s  %-19s  %8s  %-18s  %7s  %s\n", "RUN", "STARTED", "TIME", "OUTCOME",
		       "BLOCKED", "COMMAND");
	audit_local_time(r->started ? r->started : "-", started);
	print_duration(wall, r->wall_ms);
	str_escape_into(outcome, 20, r->outcome, strlen(r->outcome));
	if (strcmp(outcome, "exit") == 0 && r->status >= 0)
		snprintf(outcome, sizeof(outcome), "exit %d", (int)r->status);
	if (r->blocked)
		snprintf(blocked, sizeof(blocked), "%lu", r->blocked);
	/* Cut where the terminal ends, so that a table stays one. */
	size_t room = o->width > 26 + 2 + 19 + 2 + 8 + 2 + 18 + 2 + 7 + 2 + 12
			      ? o->width - (26 + 2 + 19 + 2 + 8 + 2 + 18 + 2 + 7 + 2)
			      : 100;

	str_escape_into(command, room + 1 < sizeof(command) ? room + 1 : sizeof(command),
			r->command ? r->command : "", r->command ? strlen(r->command) : 0);
	enum audit_severity of_outcome = r->damaged || r->lost || r->errors ? AUDIT_ERROR
					 : r->limits			    ? AUDIT_LIMIT
									    : AUDIT_INFO;

	printf("%-26s  %-19s  %8s  %s%-18s%s  %s%7s%s  %s%s\n", r->id, started, wall,
	       audit_colour_on(of_outcome, o->colour), outcome, audit_colour_off(o->colour),
	       audit_colour_on(r->blocked ? AUDIT_BLOCKED : AUDIT_INFO, o->colour), blocked,
	       audit_colour_off(o->colour), command,
	       r->damaged     ? "  [log damaged]"
	       : r->unapplied ? "  [changes kept]"
			      : "");
	return 0;
}

static int list_run(int argc, char **argv);
static const struct cli_command list_command = {
	.name = "audit list",
	.summary = "list runs, the newest first",
	.usage = "[OPTION...]",
	.help = "Lists runs, the newest first, with how they ended and how many attempts were "
		"blocked.\n"
		"\n"
		"  pale audit list --since 1h\n"
		"  pale audit list --event network.blocked --json",
	.options = list_options,
	.run = list_run,
};

static int list_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&list_command, argc, argv);
	_cleanup_index_ struct audit_index *ix = NULL;
	struct list_out out = {.colour = cli_colour(stdout), .width = cli_width(stdout)};
	struct audit_filter filter = {.limit = 50};
	struct pale_err err = {0};
	char since[40];
	const char *value;
	uint64_t n;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_SINCE:
			if (audit_parse_since(value, since) < 0)
				return cli_usage("audit list",
						 "--since %s: not a time; write 1h, 30d or "
						 "2026-01-31",
						 QUOTED(value));
			filter.since = since;
			break;
		case OPT_OUTCOME: filter.outcome = value; break;
		case OPT_EVENT:
			if (!audit_event_find(value))
				return cli_usage("audit list",
						 "no event is called %s; `pale audit events` "
						 "lists them",
						 QUOTED(value));
			filter.event = value;
			break;
		case OPT_N:
			if (num_parse_u64(value, 1000000000, &n) < 0)
				return cli_usage("audit list", "-n %s: not a number",
						 QUOTED(value));
			filter.limit = (size_t)n;
			break;
		case OPT_JSON: out.json = true; break;
		}
	if (id < 0)
		return args.status;
	if (args.argc)
		return cli_usage("audit list", "it takes no operand: %s", QUOTED(args.argv[0]));
	cli_audit_recover();
	if (audit_index_open(false, &ix, &err) < 0)
		return cli_fail(&err);
	id = audit_index_query(ix, &filter, list_row, &out, &err);
	if (id < 0)
		return err.code ? cli_fail(&err) : cli_flushed(CLI_EXIT_PALE);
	if (!out.json && out.n == 0)
		fprintf(stderr, "no runs\n");
	audit_index_free(take_ptr(ix));
	audit_prune_daily();
	return cli_flushed(0);
}

/* verify */

enum { OPT_ALL = 1, OPT_HEAD, OPT_VJSON };
static const struct cli_option verify_options[] = {
	{OPT_ALL, 'a', "all", NULL, "check every run"},
	{OPT_HEAD, 0, "head", "HASH",
	 "the hash of a line noted elsewhere must be in the log (one run)"},
	{OPT_VJSON, 0, "json", NULL, "one JSON object a run"},
	{0},
};

static int verify_run(int argc, char **argv);
static const struct cli_command verify_command = {
	.name = "audit verify",
	.summary = "check that logs were not altered",
	.usage = "[RUN...|--all]",
	.help = "Checks the chain of hashes of each log (without RUN: of the last) and the seal at "
		"its end.\n"
		"Exit status 1 if one was altered, with the first line that does not hold and what "
		"was done.\n"
		"\n"
		"It proves that no line was changed, removed, added or moved after it was written, "
		"except by\n"
		"somebody who can write to the state directory and rewrote the whole log and its "
		"seal.\n"
		"Against that, keep the hash that `pale run --json` and this command print "
		"elsewhere, and\n"
		"check it with --head.",
	.options = verify_options,
	.run = verify_run,
};

/* 0, 1 if altered, or an exit status. */
static int verify_one(const char *id, const char *head, bool json)
{
	static const char *const states[] = {"whole", "live", "lost", "altered"};
	struct audit_verdict v;
	struct pale_err err = {0};

	if (audit_verify(id, head, &v, &err) < 0) {
		cli_fail(&err);
		return 1;
	}
	bool altered = v.state == AUDIT_LOG_BROKEN, colour = cli_colour(stdout);

	if (json) {
		json_t *o = json_pack(
			"{s:s, s:s, s:b, s:I, s:o, s:o*, s:s}", "run", id, "state", states[v.state],
			"ok", !altered, "lines", (json_int_t)v.lines, "first_bad_line",
			v.bad_line ? json_integer((json_int_t)v.bad_line) : json_null(), "what",
			altered ? json_string(v.what) : NULL, "head", v.head);

		json_dumpf(o, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
		putchar('\n');
		json_decref(o);
		return altered;
	}
	printf("%s  %s%-7s%s  ", id, audit_colour_on(altered ? AUDIT_BLOCKED : AUDIT_INFO, colour),
	       altered ? "ALTERED" : states[v.state], audit_colour_off(colour));
	switch (v.state) {
	case AUDIT_LOG_BROKEN:
		printf("%s", v.what);
		if (v.lines)
			printf(" (%lu line%s before hold%s)", v.lines, v.lines == 1 ? "" : "s",
			       v.lines == 1 ? "s" : "");
		break;
	case AUDIT_LOG_SEALED: printf("%lu lines, head %s", v.lines, v.head); break;
	case AUDIT_LOG_LIVE: printf("%lu lines so far; still being written", v.lines); break;
	case AUDIT_LOG_LOST:
		printf("%lu lines; its supervisor is gone and the log is not closed yet", v.lines);
		break;
	}
	if (!altered && v.head_line)
		printf("; lines 1 to %lu are as they were when that hash was noted", v.head_line);
	putchar('\n');
	return altered;
}

static int verify_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&verify_command, argc, argv);
	const char *value, *head = NULL;
	bool all = false, json = false;
	struct pale_err err = {0};
	int id, status = 0;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_ALL: all = true; break;
		case OPT_HEAD:
			if (strlen(value) != AUDIT_HASH_SIZE - 1 ||
			    strspn(value, "0123456789abcdef") != AUDIT_HASH_SIZE - 1)
				return cli_usage("audit verify", "--head %s: not a SHA-256 hash",
						 QUOTED(value));
			head = value;
			break;
		case OPT_VJSON: json = true; break;
		}
	if (id < 0)
		return args.status;
	if (all && args.argc)
		return cli_usage("audit verify", "--all and a run exclude each other");
	if (head && (all || args.argc > 1))
		return cli_usage("audit verify", "--head belongs to one run");
	if (all) {
		_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
		_cleanup_free_ char(*ids)[AUDIT_ID_SIZE] = NULL;
		size_t n = 0;

		if (audit_state_open(&s, &err) < 0 || audit_state_list(&s, &ids, &n, &err) < 0)
			return cli_fail(&err);
		for (size_t i = 0; i < n; i++)
			status |= verify_one(ids[i], NULL, json);
		return cli_flushed(status);
	}
	for (int i = 0; i < (args.argc ? args.argc : 1); i++) {
		char run[AUDIT_ID_SIZE];

		if (audit_find(args.argc ? args.argv[i] : "last", run, &err) < 0)
			return cli_fail(&err);
		status |= verify_one(run, head, json);
	}
	return cli_flushed(status);
}

/* export */

enum { OPT_FORMAT = 1, OPT_XSINCE };
static const struct cli_option export_options[] = {
	{OPT_FORMAT, 'f', "format", "FORMAT",
	 "jsonl (default): the lines as they are; otlp: OpenTelemetry", .complete = "jsonl|otlp"},
	{OPT_XSINCE, 0, "since", "TIME", "runs started since then: 1h, 30d, 2026-01-31"},
	{0},
};

static int export_run(int argc, char **argv);
static const struct cli_command export_command = {
	.name = "audit export",
	.summary = "print logs for other programs",
	.usage = "[OPTION...] [RUN...]",
	.help = "Prints the logs of the given runs, or of all, the oldest first. With --format "
		"otlp, one\n"
		"OTLP/JSON batch a line, as OpenTelemetry's file exporter writes it.\n"
		"\n"
		"  pale audit export --since 1d > events.jsonl",
	.options = export_options,
	.run = export_run,
};

static int export_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&export_command, argc, argv);
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	_cleanup_free_ char(*ids)[AUDIT_ID_SIZE] = NULL;
	const char *value;
	char since[40] = "";
	bool otlp = false;
	size_t n = 0;
	struct pale_err err = {0};
	int id, status = 0;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_FORMAT:
			otlp = strcmp(value, "otlp") == 0;
			if (!otlp && strcmp(value, "jsonl") != 0)
				return cli_usage("audit export", "--format %s: jsonl or otlp",
						 QUOTED(value));
			break;
		case OPT_XSINCE:
			if (audit_parse_since(value, since) < 0)
				return cli_usage("audit export", "--since %s: not a time",
						 QUOTED(value));
			break;
		}
	if (id < 0)
		return args.status;
	if (audit_state_open(&s, &err) < 0)
		return cli_fail(&err);
	if (args.argc) {
		ids = calloc((size_t)args.argc, AUDIT_ID_SIZE);
		for (; ids && n < (size_t)args.argc; n++)
			if (audit_find(args.argv[n], ids[n], &err) < 0)
				return cli_fail(&err);
	} else if (audit_state_list(&s, &ids, &n, &err) < 0) {
		return cli_fail(&err);
	}
	for (size_t i = 0; i < n; i++) {
		if (*since && cli_started_before(ids[i], since))
			continue;
		int r = otlp ? audit_export_otlp(stdout, ids[i], &err)
			     : audit_export_jsonl(stdout, ids[i], &err);

		/* A run that goes away meanwhile is no failure; a damaged one must not hide the
		 * rest. */
		if (r < 0 && r != -PALE_E_NOTFOUND)
			status = cli_fail(&err);
	}
	return cli_flushed(status);
}

/* prune */

enum { OPT_MAX = 1, OPT_OLDER, OPT_DRY, OPT_FORCE };
static const struct cli_option prune_options[] = {
	{OPT_MAX, 0, "max-size", "SIZE", "keep at most this much, the newest (default 1GiB)"},
	{OPT_OLDER, 0, "older-than", "TIME", "remove runs older than 30d, 2w, 12h"},
	{OPT_DRY, 'n', "dry-run", NULL, "only say what would be removed"},
	{OPT_FORCE, 0, "force", NULL, "also runs with changes that nobody applied or discarded"},
	{0},
};

static int prune_run(int argc, char **argv);
static const struct cli_command prune_command = {
	.name = "audit prune",
	.summary = "remove old runs",
	.usage = "[OPTION...]",
	.help = "Removes whole runs with all that they left, the oldest first, until what is kept "
		"fits.\n"
		"Never removes a live run, nor one whose changes were neither applied nor "
		"discarded (but\n"
		"with --force). Happens by itself, at most once a day, with the default size.",
	.options = prune_options,
	.run = prune_run,
};

static void print_pruned(void *arg, const char *id, uint64_t bytes)
{
	printf("%s  %8.1f KiB%s\n", id, (double)bytes / 1024, *(bool *)arg ? "  (would go)" : "");
}

static int prune_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&prune_command, argc, argv);
	struct audit_prune how = {.max_bytes = AUDIT_MAX_BYTES, .each = print_pruned};
	struct audit_pruned done;
	struct pale_err err = {0};
	char before[40];
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_MAX:
			if (num_parse_size(value, &how.max_bytes) < 0)
				return cli_usage("audit prune", "--max-size %s: not a size",
						 QUOTED(value));
			if (!how.max_bytes)
				how.max_bytes = 1;
			break;
		case OPT_OLDER:
			if (audit_parse_since(value, before) < 0)
				return cli_usage("audit prune", "--older-than %s: not a time",
						 QUOTED(value));
			how.before = before;
			break;
		case OPT_DRY: how.dry_run = true; break;
		case OPT_FORCE: how.force = true; break;
		}
	if (id < 0)
		return args.status;
	if (args.argc)
		return cli_usage("audit prune", "it takes no operand: %s", QUOTED(args.argv[0]));
	how.arg = &how.dry_run;
	cli_audit_recover();
	if (audit_prune(&how, &done, &err) < 0)
		return cli_fail(&err);
	printf("%s %lu run%s (%.1f MiB) of %s; kept %lu (%.1f MiB)\n",
	       how.dry_run ? "would remove" : "removed", done.runs, done.runs == 1 ? "" : "s",
	       (double)done.bytes / 1048576, QUOTED(done.path), done.kept_runs,
	       (double)done.kept_bytes / 1048576);
	if (done.unapplied)
		printf("%lu kept although old: their changes are neither applied nor discarded\n",
		       done.unapplied);
	return cli_flushed(0);
}

/* reindex, events */

static int reindex_run(int argc, char **argv);
static const struct cli_command reindex_command = {
	.name = "audit reindex",
	.summary = "make the index of runs anew",
	.usage = "",
	.help = "Reads all logs and makes index.db anew. It is only needed by somebody who changed "
		"that\n"
		"file: it is kept up to date, and a damaged one is replaced, by itself.",
	.run = reindex_run,
};

static int reindex_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&reindex_command, argc, argv);
	_cleanup_index_ struct audit_index *ix = NULL;
	struct pale_err err = {0};
	const char *value;

	if (cli_next(&args, &value) < 0)
		return args.status;
	return audit_index_open(true, &ix, &err) < 0 ? cli_fail(&err) : 0;
}

enum { OPT_MARKDOWN = 1 };
static const struct cli_option events_options[] = {
	{OPT_MARKDOWN, 0, "markdown", NULL, "docs/audit-log.md"},
	{0},
};

static int events_run(int argc, char **argv);
static const struct cli_command events_command = {
	.name = "audit events",
	.summary = "list what can stand in a log",
	.usage = "[--markdown]",
	.help = "Lists the events that can stand in a log, with their severity.",
	.options = events_options,
	.run = events_run,
};

static int events_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&events_command, argc, argv);
	_cleanup_buf_ struct buf b = BUF_INIT(1u << 20);
	bool markdown = false, colour = cli_colour(stdout);
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		markdown |= id == OPT_MARKDOWN;
	if (id < 0)
		return args.status;
	if (markdown) {
		if (audit_events_markdown(&b) < 0)
			return CLI_EXIT_PALE;
		fwrite(b.data, 1, b.len, stdout);
		return cli_flushed(0);
	}
	for (const struct audit_event *e = audit_events; e->name; e++)
		printf("%-18s  %s%-7s%s  %s\n", e->name, audit_colour_on(e->severity, colour),
		       audit_severity_name(e->severity), audit_colour_off(colour), e->doc);
	return cli_flushed(0);
}

static const struct cli_command *const subcommands[] = {
	&list_command,		 &cli_audit_show_command,
	&cli_audit_tail_command, &cli_audit_report_command,
	&verify_command,	 &export_command,
	&prune_command,		 &reindex_command,
	&events_command,	 NULL,
};

const struct cli_command cli_audit_command = {
	.name = "audit",
	.summary = "what runs did: list, show, follow, verify, export",
	.usage = "COMMAND [ARG...]",
	.help = "The audit log holds what each run was asked to do, what it used and every attempt "
		"that was\n"
		"blocked, outside the box. RUN is an id, the beginning of one, `last`, or `@1` for "
		"the run\n"
		"before the last.",
	.subcommands = subcommands,
};
