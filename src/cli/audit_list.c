/* pale audit list: runs, one a line. Runs with the caller's privileges and outside any box; what it
 * shows may come from a box and is escaped. */
#include "cli/audit.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"

enum { OPT_SINCE = 1, OPT_OUTCOME, OPT_EVENT, OPT_JSON, OPT_N };
/* As pale_result_outcome() gives them, in words without blanks. */
#define OUTCOMES                                                                               \
	"exit|signal|wall-time|cpu-time|memory|file-size|output|interrupted|destroyed|failed|" \
	"running|lost"
static const struct cli_option list_options[] = {
	{OPT_SINCE, 0, "since", "TIME", "runs started since then: 1h, 30d, 2026-01-31"},
	{OPT_OUTCOME, 0, "outcome", "OUTCOME",
	 "only runs that ended so, such as exit, signal, wall-time, memory, or that are running",
	 .complete = OUTCOMES},
	{OPT_EVENT, 0, "event", "NAME", "only runs with this event (network.blocked ...)"},
	{OPT_N, 'n', "number", "N", "at most N runs, the newest (default 50; 0: all)"},
	{OPT_JSON, 0, "json", NULL, "one JSON object a run"},
	{0},
};

/* One line of the table, safe for a terminal but for the command. */
struct row {
	char id[PALE_ID_SIZE], started[CLOCK_LOCAL], wall[32], outcome[32], blocked[24];
	char session[68]; /* "NAME: ", or nothing */
	char *command;	  /* its beginning, as in the log */
	enum pale_severity severity;
	bool damaged, unapplied;
};

struct columns {
	int id, wall, outcome;
	size_t command; /* with the mark behind it */
	bool short_marks;
};

struct list_out {
	bool json, colour;
	size_t width; /* of the terminal, or 0 */
	size_t n;
	struct row *rows; /* kept until all are known, if the width of columns depends on them */
	size_t room;
};

/* Off a terminal, and on one that is wide enough: no column depends on what is in it. */
static const struct columns wide = {.id = 26, .wall = 8, .outcome = 18};
enum {
	STARTED = 19,
	BLOCKED = 7,
	GAPS = 5 * 2,
	COMMAND_MIN = 12,
	COMMAND_MAX = 100,
	MARK_MAX = 16, /* "  [changes kept]" */
	ID_MIN = 10,   /* of a run's id, the time: a later run's is another */
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

static int list_json(const struct pale_audit_run *r)
{
	json_t *o = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:b, s:b, s:b, "
			      "s:o, s:o, s:o, s:o}",
			      "id", r->id, "started", cli_text_or_null(r->started), "ended",
			      cli_text_or_null(r->ended), "outcome", cli_text_or_null(r->outcome),
			      "status", r->status < 0 ? json_null() : json_integer(r->status),
			      "wall_ms", r->wall_ms < 0 ? json_null() : json_integer(r->wall_ms),
			      "blocked", (json_int_t)r->blocked, "limits", (json_int_t)r->limits,
			      "errors", (json_int_t)r->errors, "lines", (json_int_t)r->lines,
			      "unapplied", r->unapplied, "live", r->live, "lost", r->lost,
			      "command", cli_text_or_null(r->command), "policy",
			      cli_text_or_null(r->policy), "damaged", cli_text_or_null(r->damaged),
			      "session", cli_text_or_null(r->session));

	return cli_json_line(o);
}

static size_t fixed_width(const struct columns *c)
{
	return (size_t)c->id + STARTED + (size_t)c->wall + (size_t)c->outcome + BLOCKED + GAPS;
}

static const char *mark_of(const struct row *r, bool is_short)
{
	if (r->damaged)
		return is_short ? "  [damaged]" : "  [log damaged]";
	if (r->unapplied)
		return is_short ? "  [kept]" : "  [changes kept]";
	return "";
}

static void print_header(const struct columns *c)
{
	printf("%-*s  %-*s  %*s  %-*s  %*s  %s\n", c->id, "RUN", STARTED, "STARTED", c->wall,
	       "TIME", c->outcome, "OUTCOME", BLOCKED, "BLOCKED", "COMMAND");
}

static void print_row(const struct list_out *o, const struct row *r, const struct columns *c)
{
	const char *mark = mark_of(r, c->short_marks);
	size_t room = c->command;
	char command[512];
	_cleanup_free_ char *whole = NULL;

	/* Cut where the terminal ends, so that a table stays one. */
	if (o->width)
		room = room > strlen(mark) + 4 ? room - strlen(mark) : 4;
	if (asprintf(&whole, "%s%s", r->session, r->command) < 0)
		whole = NULL;
	str_escape_into(command, room + 1 < sizeof(command) ? room + 1 : sizeof(command),
			whole ? whole : "", whole ? strlen(whole) : 0);
	printf("%-*.*s  %-*s  %*s  %s%-*s%s  %s%*s%s  %s%s\n", c->id, c->id, r->id, STARTED,
	       r->started, c->wall, r->wall, cli_severity_on(r->severity, o->colour), c->outcome,
	       r->outcome, cli_severity_off(o->colour),
	       cli_severity_on(strcmp(r->blocked, "-") != 0 ? PALE_BLOCKED : PALE_INFO, o->colour),
	       BLOCKED, r->blocked, cli_severity_off(o->colour), command, mark);
}

static void make_row(const struct pale_audit_run *r, struct row *ret)
{
	*ret = (struct row){.blocked = "-", .damaged = r->damaged, .unapplied = r->unapplied};
	snprintf(ret->id, sizeof(ret->id), "%s", r->id);
	clock_local_text(r->started ? r->started : "-", ret->started);
	print_duration(ret->wall, r->wall_ms);
	str_escape_into(ret->outcome, 20, r->outcome, strlen(r->outcome));
	if (strcmp(ret->outcome, "exit") == 0 && r->status >= 0)
		snprintf(ret->outcome, sizeof(ret->outcome), "exit %d", (int)r->status);
	if (r->blocked)
		snprintf(ret->blocked, sizeof(ret->blocked), "%lu", r->blocked);
	ret->severity = r->damaged || r->lost || r->errors ? PALE_ERROR
			: r->limits			   ? PALE_LIMIT
							   : PALE_INFO;
	if (r->session)
		snprintf(ret->session, sizeof(ret->session), "%s: ", r->session);
	ret->command = (char *)(r->command ? r->command : "");
}

static bool is_narrow(const struct list_out *o)
{
	return o->width && o->width < fixed_width(&wide) + COMMAND_MIN + MARK_MAX;
}

static int list_row(void *arg, const struct pale_audit_run *r)
{
	struct list_out *o = arg;
	struct columns c = wide;
	struct row row;

	if (o->json)
		return list_json(r);
	make_row(r, &row);
	if (is_narrow(o)) {
		if (o->n == o->room) {
			size_t room = o->room ? o->room * 2 : 64;
			struct row *rows = reallocarray(o->rows, room, sizeof(*rows));

			if (!rows)
				return -PALE_E_NOMEM;
			o->rows = rows;
			o->room = room;
		}
		/* More than any column of it holds. */
		row.command = strndup(row.command, 2 * COMMAND_MAX);
		if (!row.command)
			return -PALE_E_NOMEM;
		o->rows[o->n++] = row;
		return 0;
	}
	c.command = o->width ? o->width - fixed_width(&wide) : COMMAND_MAX;
	if (o->n++ == 0)
		print_header(&c);
	print_row(o, &row, &c);
	return 0;
}

struct unique {
	char last[PALE_ID_SIZE];
	int len;
};

/* Ids come sorted: the one before is the one with which most is shared. */
static int count_shared(void *arg, const char *id)
{
	struct unique *u = arg;
	int n = 0;

	while (id[n] && id[n] == u->last[n])
		n++;
	if (u->len <= n)
		u->len = n + 1;
	snprintf(u->last, sizeof(u->last), "%s", id);
	return 0;
}

/* Of all ids, also of those that are not listed, so many characters tell which is meant. */
static int unique_length(void)
{
	struct unique u = {.len = ID_MIN};

	if (pale_audit_ids(NULL, count_shared, &u, NULL) < 0 || u.len > wide.id)
		return wide.id;
	return u.len;
}

/* Each column as wide as what is in it. */
static void print_narrow(const struct list_out *o)
{
	struct columns c = {.id = wide.id, .wall = 4, .outcome = 7};
	size_t mark = 0;

	for (size_t i = 0; i < o->n; i++) {
		const struct row *r = &o->rows[i];

		c.wall = (int)strlen(r->wall) > c.wall ? (int)strlen(r->wall) : c.wall;
		c.outcome =
			(int)strlen(r->outcome) > c.outcome ? (int)strlen(r->outcome) : c.outcome;
		mark = strlen(mark_of(r, false)) > mark ? strlen(mark_of(r, false)) : mark;
	}
	if (o->width < fixed_width(&c) + COMMAND_MIN + mark) {
		c.id = unique_length();
		c.short_marks = true;
	}
	c.command = o->width > fixed_width(&c) ? o->width - fixed_width(&c) : 0;
	if (o->n)
		print_header(&c);
	for (size_t i = 0; i < o->n; i++)
		print_row(o, &o->rows[i], &c);
}

static void list_out_done(struct list_out *o)
{
	for (size_t i = 0; o->rows && i < o->n; i++)
		free(o->rows[i].command);
	free(o->rows);
}

/* "wall-time", "wall time" or the limit's name, "wall", to "wall time"; -1: there is none such. */
static int outcome_named(const char *name, char out[static 32])
{
	size_t len = strlen(name);

	for (const char *at = OUTCOMES; *at; at += strspn(at, "|")) {
		size_t n = strcspn(at, "|"), i = 0;

		while (i < n && i < len && (at[i] == name[i] || (at[i] == '-' && name[i] == ' ')))
			i++;
		if (i == len && len > 0 && (i == n || at[i] == '-')) {
			snprintf(out, 32, "%.*s", (int)n, at);
			for (char *dash = out; (dash = strchr(dash, '-'));)
				*dash = ' ';
			return 0;
		}
		at += n;
	}
	return -1;
}

static int list_run(int argc, char **argv);
const struct cli_command cli_audit_list_command = {
	.name = "audit list",
	.summary = "list runs, the newest first",
	.usage = "[OPTION...]",
	.help = "Lists runs, the newest first, with how they ended and how many attempts were "
		"blocked.\n"
		"On a terminal that is too narrow, the command is cut and ids are shortened to "
		"what still\n"
		"tells one from all others. Before the command of a session stands its name.\n"
		"\n"
		"  pale audit list --since 1h\n"
		"  pale audit list --event network.blocked --json",
	.options = list_options,
	.run = list_run,
};

static int list_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_audit_list_command, argc, argv);
	_cleanup_(list_out_done) struct list_out out = {.colour = cli_colour(stdout),
							.width = cli_width(stdout)};
	struct pale_audit_filter filter = {.size = sizeof(filter), .limit = 50};
	struct pale_err err = {0};
	const char *value;
	char outcome[32];
	uint64_t n;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_SINCE: filter.since = value; break;
		case OPT_OUTCOME:
			if (outcome_named(value, outcome) < 0)
				return cli_usage("audit list", "--outcome %s: one of %s",
						 QUOTED(value), OUTCOMES);
			filter.outcome = outcome;
			break;
		case OPT_EVENT: filter.event = value; break;
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
	id = pale_audit_list(&filter, list_row, &out, &err);
	if (id == -PALE_E_USAGE)
		return cli_usage("audit list", "%s", err.message);
	if (id < 0)
		return err.code ? cli_fail(&err) : cli_flushed(CLI_EXIT_PALE);
	if (out.rows)
		print_narrow(&out);
	if (!out.json && out.n == 0)
		fprintf(stderr, "no runs\n");
	pale_audit_prune_daily();
	return cli_flushed(0);
}
