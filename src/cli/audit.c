/* pale audit: checks, exports and prunes the logs of runs. Runs with the caller's privileges and
 * outside any box; what it shows may come from a box and is escaped. Listing runs is in
 * audit_list.c, showing and following single ones in audit_show.c. */
#include "cli/audit.h"

#include <string.h>
#include <sys/ioctl.h>

#include "base/num.h"
#include "base/str.h"

void cli_audit_recover(void)
{
	struct pale_err err = {0};

	if (pale_audit_recover(&err) < 0)
		cli_fail(&err);
}

int cli_audit_run(const struct cli_args *args, char ret[PALE_ID_SIZE], struct pale_err *err)
{
	return pale_audit_find(args->argc ? args->argv[0] : "last", ret, err);
}

const char *cli_severity_on(enum pale_severity s, bool colour)
{
	static const char *const codes[] = {"", "\033[1;31m", "\033[1;33m", "\033[1;35m"};

	return colour ? codes[s] : "";
}

const char *cli_severity_off(bool colour)
{
	return colour ? "\033[0m" : "";
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

json_t *cli_text_or_null(const char *s)
{
	char safe[4096];

	if (!s)
		return json_null();
	if (str_utf8_prefix(s, strlen(s)) == strlen(s))
		return json_string(s);
	return json_string(str_escape_into(safe, sizeof(safe), s, strlen(s)));
}

int cli_json_line(json_t *o)
{
	int failed = !o || json_dumpf(o, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) < 0 ||
		     putchar('\n') == EOF;

	json_decref(o);
	return failed ? -PALE_E_SYSTEM : 0;
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
	struct pale_audit_verdict v;
	struct pale_err err = {0};

	if (pale_audit_verify(id, head, &v, &err) < 0) {
		cli_fail(&err);
		return 1;
	}
	bool altered = v.state == PALE_AUDIT_BROKEN, colour = cli_colour(stdout);

	if (json) {
		json_t *o = json_pack(
			"{s:s, s:s, s:b, s:I, s:o, s:o*, s:s}", "run", id, "state", states[v.state],
			"ok", !altered, "lines", (json_int_t)v.lines, "first_bad_line",
			v.bad_line ? json_integer((json_int_t)v.bad_line) : json_null(), "what",
			altered ? json_string(v.what) : NULL, "head", v.head);

		return cli_json_line(o) < 0 ? 1 : altered;
	}
	printf("%s  %s%-7s%s  ", id, cli_severity_on(altered ? PALE_BLOCKED : PALE_INFO, colour),
	       altered ? "ALTERED" : states[v.state], cli_severity_off(colour));
	switch (v.state) {
	case PALE_AUDIT_BROKEN:
		printf("%s", v.what);
		if (v.lines)
			printf(" (%lu line%s before hold%s)", v.lines, v.lines == 1 ? "" : "s",
			       v.lines == 1 ? "s" : "");
		break;
	case PALE_AUDIT_SEALED: printf("%lu lines, head %s", v.lines, v.head); break;
	case PALE_AUDIT_LIVE: printf("%lu lines so far; still being written", v.lines); break;
	case PALE_AUDIT_LOST:
		printf("%lu lines; its supervisor is gone and the log is not closed yet", v.lines);
		break;
	}
	if (!altered && v.head_line)
		printf("; lines 1 to %lu are as they were when that hash was noted", v.head_line);
	putchar('\n');
	return altered;
}

struct verify_all {
	bool json;
	int status;
};

static int verify_each(void *arg, const char *id)
{
	struct verify_all *v = arg;

	v->status |= verify_one(id, NULL, v->json);
	return 0;
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
			if (strlen(value) != sizeof(((struct pale_audit_verdict *)0)->head) - 1 ||
			    strspn(value, "0123456789abcdef") !=
				    sizeof(((struct pale_audit_verdict *)0)->head) - 1)
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
		struct verify_all v = {.json = json};

		if (pale_audit_ids(NULL, verify_each, &v, &err) < 0)
			return cli_fail(&err);
		return cli_flushed(v.status);
	}
	for (int i = 0; i < (args.argc ? args.argc : 1); i++) {
		char run[PALE_ID_SIZE];

		if (pale_audit_find(args.argc ? args.argv[i] : "last", run, &err) < 0)
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

struct export
{
	bool otlp;
	int status;
};

/* A run that goes away meanwhile is no failure; a damaged one must not hide the rest. */
static int export_one(void *arg, const char *id)
{
	struct export *x = arg;
	struct pale_err err = {0};
	int r = pale_audit_export(id, x->otlp, stdout, &err);

	if (r < 0 && r != -PALE_E_NOTFOUND)
		x->status = cli_fail(&err);
	return 0;
}

static int export_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&export_command, argc, argv);
	_cleanup_free_ char(*ids)[PALE_ID_SIZE] = NULL;
	const char *value, *since = NULL;
	struct export x = {0};
	struct pale_err err = {0};
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_FORMAT:
			x.otlp = strcmp(value, "otlp") == 0;
			if (!x.otlp && strcmp(value, "jsonl") != 0)
				return cli_usage("audit export", "--format %s: jsonl or otlp",
						 QUOTED(value));
			break;
		case OPT_XSINCE: since = value; break;
		}
	if (id < 0)
		return args.status;
	if (since && args.argc)
		return cli_usage("audit export", "--since and a run exclude each other");
	if (!args.argc) {
		id = pale_audit_ids(since, export_one, &x, &err);
		if (id == -PALE_E_USAGE)
			return cli_usage("audit export", "%s", err.message);
		return id < 0 ? cli_fail(&err) : cli_flushed(x.status);
	}
	/* All are found before the first is printed. */
	ids = calloc((size_t)args.argc, sizeof(*ids));
	if (!ids)
		return CLI_EXIT_PALE;
	for (int i = 0; i < args.argc; i++)
		if (pale_audit_find(args.argv[i], ids[i], &err) < 0)
			return cli_fail(&err);
	for (int i = 0; i < args.argc; i++)
		export_one(&x, ids[i]);
	return cli_flushed(x.status);
}

/* prune */

enum { OPT_MAX = 1, OPT_OLDER, OPT_DRY, OPT_FORCE, OPT_PJSON };
static const struct cli_option prune_options[] = {
	{OPT_MAX, 0, "max-size", "SIZE", "keep at most this much, the newest (default 1GiB)"},
	{OPT_OLDER, 0, "older-than", "TIME", "remove runs older than 30d, 2w, 12h"},
	{OPT_DRY, 'n', "dry-run", NULL, "only say what would be removed"},
	{OPT_FORCE, 0, "force", NULL, "also runs with changes that nobody applied or discarded"},
	{OPT_PJSON, 0, "json", NULL, "one JSON object with what was removed"},
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

struct pruning {
	bool dry_run;
	json_t *removed; /* NULL: printed for people */
};

static void tell_pruned(void *arg, const char *id, uint64_t bytes)
{
	const struct pruning *p = arg;

	if (p->removed)
		json_array_append_new(
			p->removed, json_pack("{s:s, s:I}", "id", id, "bytes", (json_int_t)bytes));
	else
		printf("%s  %8.1f KiB%s\n", id, (double)bytes / 1024,
		       p->dry_run ? "  (would go)" : "");
}

/* removed is stolen. */
static int prune_json(const struct pale_audit_pruned *done, bool dry_run, json_t *removed)
{
	json_t *o =
		json_pack("{s:b, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "dry_run", dry_run,
			  "path", cli_text_or_null(done->path), "removed", removed, "runs",
			  (json_int_t)done->runs, "bytes", (json_int_t)done->bytes, "kept_runs",
			  (json_int_t)done->kept_runs, "kept_bytes", (json_int_t)done->kept_bytes,
			  "unapplied", (json_int_t)done->unapplied, "live", (json_int_t)done->live);

	return cli_json_line(o) < 0 ? cli_flushed(CLI_EXIT_PALE) : cli_flushed(0);
}

static int prune_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&prune_command, argc, argv);
	struct pale_audit_prune how = {
		.size = sizeof(how), .max_bytes = UINT64_C(1) << 30, .each = tell_pruned};
	struct pruning p = {0};
	struct pale_audit_pruned done;
	struct pale_err err = {0};
	const char *value;
	bool json = false;
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
		case OPT_OLDER: how.older = value; break;
		case OPT_DRY: how.dry_run = true; break;
		case OPT_FORCE: how.force = true; break;
		case OPT_PJSON: json = true; break;
		}
	if (id < 0)
		return args.status;
	if (args.argc)
		return cli_usage("audit prune", "it takes no operand: %s", QUOTED(args.argv[0]));
	p.dry_run = how.dry_run;
	p.removed = json ? json_array() : NULL;
	if (json && !p.removed)
		return CLI_EXIT_PALE;
	how.arg = &p;
	cli_audit_recover();
	id = pale_audit_prune(&how, &done, &err);
	if (id < 0)
		json_decref(p.removed);
	if (id == -PALE_E_USAGE)
		return cli_usage("audit prune", "%s", err.message);
	if (id < 0)
		return cli_fail(&err);
	if (json)
		return prune_json(&done, how.dry_run, p.removed);
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
	struct pale_err err = {0};
	const char *value;

	if (cli_next(&args, &value) < 0)
		return args.status;
	return pale_audit_reindex(&err) < 0 ? cli_fail(&err) : 0;
}

enum { OPT_MARKDOWN = 1, OPT_EJSON };
static const struct cli_option events_options[] = {
	{OPT_MARKDOWN, 0, "markdown", NULL, "docs/audit-log.md"},
	{OPT_EJSON, 0, "json", NULL, "one JSON object an event"},
	{0},
};

static int events_run(int argc, char **argv);
static const struct cli_command events_command = {
	.name = "audit events",
	.summary = "list what can stand in a log",
	.usage = "[--json|--markdown]",
	.help = "Lists the events that can stand in a log, with their severity.",
	.options = events_options,
	.run = events_run,
};

static int events_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&events_command, argc, argv);
	_cleanup_free_ char *text = NULL;
	struct pale_audit_event e;
	struct pale_err err = {0};
	bool markdown = false, json = false, colour = cli_colour(stdout);
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_MARKDOWN: markdown = true; break;
		case OPT_EJSON: json = true; break;
		}
	if (id < 0)
		return args.status;
	if (json && markdown)
		return cli_usage("audit events", "--json and --markdown exclude each other");
	if (markdown) {
		if (pale_audit_docs(&text, &err) < 0)
			return cli_fail(&err);
		fputs(text, stdout);
		return cli_flushed(0);
	}
	for (size_t i = 0; json && pale_audit_event(i, &e); i++)
		if (cli_json_line(json_pack("{s:s, s:s, s:s, s:s}", "name", e.name, "stage",
					    e.stage, "severity", e.severity_name, "doc", e.doc)) <
		    0)
			return cli_flushed(CLI_EXIT_PALE);
	for (size_t i = 0; !json && pale_audit_event(i, &e); i++)
		printf("%-18s  %s%-7s%s  %s\n", e.name, cli_severity_on(e.severity, colour),
		       e.severity_name, cli_severity_off(colour), e.doc);
	return cli_flushed(0);
}

static const struct cli_command *const subcommands[] = {
	&cli_audit_list_command, &cli_audit_show_command,
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
		"blocked, outside the box. RUN is an id, the beginning of one, `last`, `@1` for "
		"the "
		"run before the\n"
		"last, or the name of a session (the last one of that name).",
	.subcommands = subcommands,
};
