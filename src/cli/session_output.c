/* pale session output: what an execution printed so far, or prints until it ends. Runs with the
 * caller's rights outside any box. */
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "cli/audit.h"
#include "cli/blocked.h"
#include "cli/session_front.h"

enum { OPT_FROM = 1, OPT_FOLLOW, OPT_DISPLAY, OPT_JSON, OPT_STREAM };
static const struct cli_option options[] = {
	{OPT_FROM, 0, "from", "K", "from its event K on (default: 0, the first)", "any"},
	{OPT_FOLLOW, 'f', "follow", NULL, "go on until it has ended"},
	{OPT_DISPLAY, 0, "display", "DIR", "write what it shows to files in DIR", "dir"},
	{OPT_JSON, 0, "json", NULL,
	 "one JSON object: events, the number of the next one, and, once it has ended, the result"},
	{OPT_STREAM, 0, "stream", NULL, "print a JSON object a line as things come"},
	{0},
};

struct asked {
	const char *session;
	uint32_t execution;
	uint64_t from;
	bool follow;
};

/* What there is, as text or a line an event. */
static int print_all(struct session_print *p, const json_t *answer, const char *run)
{
	json_t *result = json_object_get(answer, "result");
	const json_t *event;
	char note[160];
	size_t i;

	session_print_begin(p, (uint32_t)cli_int_at(answer, "execution"));
	json_array_foreach(json_object_get(answer, "events"), i, event)
		session_print_event(p, event);
	if (result) {
		json_object_set(result, "omitted_bytes", json_object_get(answer, "omitted_bytes"));
		return session_print_result(p, json_incref(result), run);
	}
	snprintf(note, sizeof(note), "execution %u %s", p->execution,
		 strcmp(cli_string_at(answer, "state"), "queued") == 0
			 ? "waits for its turn"
			 : "still runs: --follow waits for its end");
	session_print_note(p, note);
	return 0;
}

static int output(const struct asked *a, struct session_print *print)
{
	_cleanup_session_ struct pale_session *s = NULL;
	_cleanup_json_ json_t *answer = NULL;
	struct session_front f = {.name = a->session ? a->session : "last", .print = print};
	struct pale_err err = {0};
	int status;

	if (pale_session_open(a->session, &s, &err) < 0)
		return cli_fail_as(&err, err.code == PALE_E_USAGE ? CLI_EXIT_USAGE : CLI_EXIT_PALE);
	f.id = pale_session_id(s);
	if (a->follow) {
		if (session_front_begin(&f, &err) < 0)
			return cli_fail(&err);
		status = session_front_follow(&f, s, a->execution, a->from);
		session_front_done(&f);
		return status;
	}
	if (cli_session_events(s, a->execution, a->from, &answer, &err) < 0)
		return cli_fail(&err);
	print->next = (json_int_t)a->from;
	if (print->form != SESSION_JSON)
		return cli_flushed(print_all(print, answer, f.id));
	status = json_object_get(answer, "result")
			 ? session_status(json_object_get(answer, "result"))
			 : 0;
	return cli_session_print_json(take_ptr(answer)) ? CLI_EXIT_PALE : status;
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_session_output_command, argc, argv);
	struct session_print print = {0};
	struct asked a = {0};
	bool json = false, stream = false;
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_FROM:
			if (num_parse_u64(value, INT64_MAX, &a.from) < 0)
				return cli_usage("session output", "--from %s: not a number",
						 QUOTED(value));
			break;
		case OPT_FOLLOW: a.follow = true; break;
		case OPT_DISPLAY: print.display_dir = value; break;
		case OPT_JSON: json = true; break;
		case OPT_STREAM:
			stream = true;
			cli_json();
			break;
		}
	if (id < 0)
		return args.status;
	if (args.argc > 2)
		return cli_usage("session output", "one execution at a time: %s",
				 QUOTED(args.argv[2]));
	if (json && stream)
		return cli_usage("session output", "--json and --stream exclude each other");
	if (args.argc > 1 && cli_session_number("session output", args.argv[1], &a.execution) < 0)
		return CLI_EXIT_USAGE;
	a.session = args.argc ? args.argv[0] : NULL;
	print.form = json ? SESSION_JSON : stream ? SESSION_STREAM : SESSION_TEXT;
	return output(&a, &print);
}

const struct cli_command cli_session_output_command = {
	.name = "session output",
	.summary = "show what an execution printed",
	.usage = "[OPTION...] [SESSION] [N]",
	.help = "Shows what execution N printed so far; without N, the newest. With --follow, also "
		"what\n"
		"follows, until it has ended; Ctrl-C then leaves it alone. It can be read as often "
		"as one\n"
		"likes; of much output the middle is not kept.\n"
		"\n"
		"  n=$(pale session exec work --background train.py)\n"
		"  pale session output work $n --follow\n"
		"\n" SESSION_HELP "\n"
		"\n"
		"Exit status: 0 while it runs; once it has ended, that of `pale session exec`; 125 "
		"if there is\n"
		"no such session or execution, or Pale failed.\n",
	.options = options,
	.run = run,
};
