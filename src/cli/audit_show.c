/* pale audit show, pale audit tail: one run as people read it, and runs as they happen. Runs with
 * the caller's privileges outside any box; texts from a log are hostile, and come escaped. */
#include "cli/audit.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"

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

static int show_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_audit_show_command, argc, argv);
	unsigned flags = cli_colour(stdout) ? PALE_PRINT_COLOUR : 0;
	struct pale_err err = {0};
	char run[PALE_ID_SIZE];
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_EVENTS: flags |= PALE_SHOW_EVENTS; break;
		case OPT_BLOCKED: flags |= PALE_SHOW_BLOCKED; break;
		case OPT_JSON: flags |= PALE_SHOW_JSON; break;
		}
	if (id < 0)
		return args.status;
	if (args.argc > 1)
		return cli_usage("audit show", "one run at a time: %s", QUOTED(args.argv[1]));
	cli_audit_recover();
	if (cli_audit_run(&args, run, &err) < 0)
		return cli_fail(&err);
	id = pale_audit_show(run, stdout, flags, cli_width(stdout), &err);
	if (id < 0)
		return err.code ? cli_fail(&err) : CLI_EXIT_PALE;
	if ((flags & (PALE_SHOW_BLOCKED | PALE_SHOW_JSON)) == PALE_SHOW_BLOCKED && id == 0)
		fprintf(stderr, "nothing was blocked\n");
	return cli_flushed(0);
}

/* tail */

enum { OPT_FOLLOW = 1, OPT_LAST, OPT_TJSON };
static const struct cli_option tail_options[] = {
	{OPT_FOLLOW, 'f', "follow", NULL,
	 "go on as events happen; without RUN, in all live and new runs"},
	{OPT_LAST, 'n', "number", "N",
	 "show the last N of what happened before (default 10); of each run, without RUN"},
	{OPT_TJSON, 0, "json", NULL, "the events as JSON lines"},
	{0},
};

static int tail_run(int argc, char **argv);
const struct cli_command cli_audit_tail_command = {
	.name = "audit tail",
	.summary = "show the last events of a run, or follow runs",
	.usage = "[-f] [-n N] [RUN]",
	.help = "Shows the last ten events of a run (without RUN: the last). With -f, follows it "
		"to its end;\n"
		"with -f and no RUN, follows every live run, and those that start meanwhile, until "
		"Ctrl-C.\n"
		"\n"
		"  pale audit tail -n 50\n"
		"  pale audit tail -f -n 0               only what is new, in all runs",
	.options = tail_options,
	.run = tail_run,
};

struct tail {
	bool many, json;
	unsigned flags;
	size_t width;
};

static int print_event(void *arg, const char *id, const char *json)
{
	const struct tail *t = arg;

	if (!id)
		return fflush(stdout) != 0;
	if (!json) {
		fprintf(stderr, "pale: run %s: its log is damaged\n", id);
		return 0;
	}
	if (t->json)
		return puts(json) == EOF;
	if (t->many)
		printf("%.10s  ", id);
	return pale_audit_print(json, stdout, t->flags, t->width, NULL) < 0;
}

static int tail_run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_audit_tail_command, argc, argv);
	struct tail t = {.flags = cli_colour(stdout) ? PALE_PRINT_COLOUR : 0,
			 .width = cli_width(stdout)};
	struct pale_audit_tail how = {.size = sizeof(how), .last = 10};
	struct pale_err err = {0};
	char run[PALE_ID_SIZE];
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_FOLLOW: how.on = true; break;
		case OPT_LAST:
			if (num_parse_u64(value, 1000000000, &how.last) < 0)
				return cli_usage("audit tail", "-n %s: not a number",
						 QUOTED(value));
			break;
		case OPT_TJSON: t.json = true; break;
		}
	if (id < 0)
		return args.status;
	if (args.argc > 1)
		return cli_usage("audit tail", "one run at a time: %s", QUOTED(args.argv[1]));
	t.many = how.on && !args.argc;
	if (t.many && t.width > 12)
		t.width -= 12;
	cli_audit_recover();
	if (!t.many && cli_audit_run(&args, run, &err) < 0)
		return cli_fail(&err);
	how.id = t.many ? NULL : run;
	id = pale_audit_tail(&how, print_event, &t, &err);
	if (id < 0)
		return cli_fail(&err);
	return cli_flushed(id ? CLI_EXIT_PALE : 0);
}
