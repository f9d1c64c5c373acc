/* pale session ls, pale session show: which sessions there are, and what one of them is and did.
 * Runs with the caller's rights outside any box; what comes from a box (banners, code) is escaped.
 */
#include "cli/session.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "cli/audit.h"
#include "cli/blocked.h"

/* ls */

enum { OPT_JSON = 1 };
static const struct cli_option ls_options[] = {
	{OPT_JSON, 0, "json", NULL, "one JSON object a session"},
	{0},
};

enum { NAME, ID, KERNEL, STATE, EXECUTIONS, IDLE, MEMORY, AGE, COLUMNS };
static const char *const titles[COLUMNS] = {"NAME",	  "ID",	  "KERNEL", "STATE",
					    "EXECUTIONS", "IDLE", "MEMORY", "AGE"};

struct row {
	char text[COLUMNS][80];
};

struct listing {
	bool json;
	int failed;
	struct row *rows;
	size_t n, room;
};

static void duration(char out[static 80], json_int_t ms)
{
	char text[NUM_TEXT];

	snprintf(out, 80, "%s", num_round_duration(text, ms > 0 ? (uint64_t)ms : 0));
}

static void fill(struct row *row, const json_t *info)
{
	const json_t *session = json_object_get(info, "session"),
		     *usage = json_object_get(info, "usage");
	const char *name = cli_string_at(session, "name");
	json_int_t memory = cli_int_at(usage, "memory_peak_bytes");
	char size[NUM_TEXT];

	snprintf(row->text[NAME], 80, "%s", *name ? name : "-");
	snprintf(row->text[ID], 80, "%s", cli_string_at(info, "id"));
	snprintf(row->text[KERNEL], 80, "%s", cli_string_at(session, "kernel"));
	snprintf(row->text[STATE], 80, "%s", cli_string_at(session, "state"));
	snprintf(row->text[EXECUTIONS], 80, "%lld", (long long)cli_int_at(session, "executions"));
	duration(row->text[IDLE], cli_int_at(session, "idle_ms"));
	snprintf(row->text[MEMORY], 80, "%s",
		 memory > 0 ? num_round_size(size, (uint64_t)memory) : "-");
	duration(row->text[AGE], cli_int_at(usage, "wall_ms"));
}

static void each(void *arg, const char *text)
{
	struct listing *l = arg;
	_cleanup_json_ json_t *info = NULL;

	if (l->json) {
		l->failed |= puts(text) == EOF;
		return;
	}
	info = json_loads(text, JSON_ALLOW_NUL, NULL);
	if (info && l->n == l->room) {
		size_t room = l->room ? l->room * 2 : 16;
		struct row *rows = reallocarray(l->rows, room, sizeof(*rows));

		if (rows) {
			l->rows = rows;
			l->room = room;
		}
	}
	if (!info || l->n == l->room)
		l->failed = 1;
	else
		fill(&l->rows[l->n++], info);
}

static void print_table(const struct listing *l)
{
	int width[COLUMNS];

	for (int c = 0; c < COLUMNS; c++) {
		width[c] = (int)strlen(titles[c]);
		for (size_t i = 0; i < l->n; i++)
			if ((int)strlen(l->rows[i].text[c]) > width[c])
				width[c] = (int)strlen(l->rows[i].text[c]);
	}
	for (size_t i = 0; i <= l->n; i++) {
		for (int c = 0; c < COLUMNS; c++) {
			const char *text = i ? l->rows[i - 1].text[c] : titles[c];

			printf("%s%*s", c ? "  " : "", c >= EXECUTIONS ? width[c] : -width[c],
			       text);
		}
		putchar('\n');
	}
}

static int ls_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_session_ls_command, argc, argv);
	struct listing l = {0};
	struct pale_err err = {0};
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		l.json = true;
	if (id < 0)
		return args.status;
	if (args.argc)
		return cli_usage("session ls", "it takes no operand: %s", QUOTED(args.argv[0]));
	if (pale_session_list(each, &l, &err) < 0) {
		cli_fail(&err);
		l.failed = true;
	}
	if (l.n)
		print_table(&l);
	else if (!l.json && !l.failed)
		fprintf(stderr, "no sessions\n");
	free(l.rows);
	return cli_flushed(l.failed ? CLI_EXIT_PALE : 0);
}

const struct cli_command cli_session_ls_command = {
	.name = "session ls",
	.summary = "list the sessions that run",
	.usage = "[OPTION...]",
	.help = "Lists the caller's sessions, the oldest first: how much each executed, for how "
		"long nobody\n"
		"used it, and the most memory that it had. --json prints what `info` of the "
		"control "
		"protocol\n"
		"says, a line a session. What a pool holds ready is nobody's session: `pale pool "
		"ls`.\n"
		"\n"
		"Exit status: 0, also if there are none; 125 if Pale failed.\n",
	.options = ls_options,
	.run = ls_run,
};

/* show */

static const struct cli_option show_options[] = {
	{OPT_JSON, 0, "json", NULL, "one JSON object, with the history"},
	{0},
};

static void line(const char *what, const char *text)
{
	if (!*text)
		return;
	printf("%-11s ", what);
	cli_print_escaped(stdout, text);
	putchar('\n');
}

static void print_rollback(const json_t *rollback)
{
	const char *why = cli_string_at(rollback, "why");

	if (!json_is_true(json_object_get(rollback, "wanted")))
		line("rollback", "no");
	else
		line("rollback", "yes");
	if (json_is_true(json_object_get(rollback, "undo")))
		line("undo", "the last execution can be undone");
	else if (*why) {
		printf("%-11s no: ", "undo");
		cli_print_escaped(stdout, why);
		putchar('\n');
	}
}

static void print_history(const json_t *history)
{
	const json_t *x;
	size_t i;

	json_array_foreach(history, i, x)
	{
		const char *outcome = cli_string_at(x, "outcome");
		char time[80] = "";

		if (json_object_get(x, "wall_ms"))
			duration(time, cli_int_at(x, "wall_ms"));
		printf("%s%6lld  %-11s  %8s  ", i ? "" : "\n",
		       (long long)cli_int_at(x, "execution"),
		       *outcome ? outcome : cli_string_at(x, "state"), time);
		cli_print_escaped(stdout, cli_string_at(x, "code"));
		putchar('\n');
	}
}

static void print_session(const json_t *info, const json_t *shown)
{
	const json_t *usage = json_object_get(info, "usage"),
		     *limits = json_object_get(info, "limits");
	char a[NUM_TEXT], b[NUM_TEXT], text[160];

	line("session", cli_string_at(shown, "name"));
	line("id", cli_string_at(info, "id"));
	line("kernel", cli_string_at(shown, "kernel"));
	line("interpreter", cli_string_at(shown, "banner"));
	line("policy", cli_string_at(info, "policy"));
	line("started", cli_string_at(info, "started"));
	line("state", cli_string_at(shown, "state"));
	num_round_duration(a, (uint64_t)cli_int_at(shown, "idle_ms"));
	if (cli_int_at(shown, "idle_limit_ms"))
		snprintf(text, sizeof(text), "%s of at most %s", a,
			 num_format_duration(b, (uint64_t)cli_int_at(shown, "idle_limit_ms")));
	else
		snprintf(text, sizeof(text), "%s; no end by it", a);
	line("idle", text);
	snprintf(text, sizeof(text), "%s of %s at the most",
		 num_round_size(a, (uint64_t)cli_int_at(usage, "memory_peak_bytes")),
		 num_format_size(b, (uint64_t)cli_int_at(limits, "memory_bytes")));
	line("memory", text);
	snprintf(text, sizeof(text), "%s, processor time %s",
		 num_format_duration(a, (uint64_t)cli_int_at(limits, "wall_ms")),
		 num_format_duration(b, (uint64_t)cli_int_at(limits, "cpu_ms")));
	line("time-out", text);
	print_rollback(json_object_get(shown, "rollback"));
	print_history(json_object_get(shown, "history"));
}

static int show(const char *ref, bool json)
{
	_cleanup_session_ struct pale_session *s = NULL;
	_cleanup_json_ json_t *info = NULL, *shown = NULL;
	struct pale_err err = {0};

	if (pale_session_open(ref, &s, &err) < 0 ||
	    cli_session_call(s, "info", NULL, 0, &info, &err) < 0 ||
	    cli_session_call(s, "session.show", NULL, 0, &shown, &err) < 0)
		return cli_session_fail(&err);
	if (json) {
		json_object_set(info, "session", shown);
		return cli_session_print_json(take_ptr(info));
	}
	print_session(info, shown);
	return cli_flushed(0);
}

static int show_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_session_show_command, argc, argv);
	const char *value, *ref;
	bool json = false;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		json = true;
	if (id < 0)
		return args.status;
	id = cli_session_operand(&args, &ref);
	return id ? id : show(ref, json);
}

const struct cli_command cli_session_show_command = {
	.name = "session show",
	.summary = "show a session, and what it executed",
	.usage = "[OPTION...] [SESSION]",
	.help = "Shows what a session is and does, and its last executions: number, outcome, time, "
		"and the\n"
		"first line of the code. Without SESSION, the only one that runs.\n"
		"\n" SESSION_HELP "\n"
		"\n"
		"Exit status: 0; 125 if there is no such session, or Pale failed.\n",
	.options = show_options,
	.run = show_run,
};
