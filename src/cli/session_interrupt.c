/* pale session interrupt: ends what a session executes, and waits for that. Runs with the caller's
 * rights outside any box. */
#include "cli/session.h"

#include <string.h>

#include "base/str.h"
#include "cli/audit.h"
#include "cli/blocked.h"

#define BACK_MS 10000  /* for the interpreter to be back, or its box to end, after the grace */
#define MOST_MS 600000 /* that a session lets anybody wait */

enum { OPT_EXECUTION = 1, OPT_GRACE, OPT_ESCALATE, OPT_JSON };
static const struct cli_option options[] = {
	{OPT_EXECUTION, 'e', "execution", "N", "this one; one that only waits is not begun", "any"},
	{OPT_GRACE, 0, "grace", "TIME",
	 "how long it has to end by itself (default: as the policy says)", "any"},
	{OPT_ESCALATE, 0, "escalate", "HOW",
	 "what comes then: none; rollback (the default): its variables as they were before it, if "
	 "that state is held, else nothing; restart: else a fresh interpreter",
	 .complete = "none|rollback|restart"},
	{OPT_JSON, 0, "json", NULL, "print the answer as JSON"},
	{0},
};

static void print(const json_t *answer, const char *escalate)
{
	const char *how = cli_string_at(answer, "how");
	long long n = cli_int_at(answer, "execution");

	if (!n)
		printf("nothing runs\n");
	else if (!json_is_true(json_object_get(answer, "interrupted")))
		printf("execution %lld goes on%s\n", n,
		       strcmp(escalate, "restart") == 0
			       ? ""
			       : ": its state cannot come back; --escalate restart ends it with "
				 "all variables");
	else if (strcmp(how, "signal") == 0)
		printf("execution %lld was interrupted\n", n);
	else if (strcmp(how, "rollback") == 0)
		printf("execution %lld was taken back: variables are as before it\n", n);
	else if (strcmp(how, "restart") == 0)
		printf("execution %lld was ended with the interpreter: variables are gone, a fresh "
		       "one took its place\n",
		       n);
	else if (strcmp(how, "destroyed") == 0)
		printf("execution %lld ended with its box\n", n);
	else
		printf("execution %lld has ended\n", n);
}

static int interrupt(const char *ref, uint32_t execution, int64_t grace_ms, const char *escalate,
		     bool json)
{
	_cleanup_session_ struct pale_session *s = NULL;
	_cleanup_json_ json_t *answer = NULL;
	uint64_t wait_ms = (grace_ms < 0 ? 3600000 : (uint64_t)grace_ms) + BACK_MS;
	struct pale_err err = {0};
	json_t *arguments;
	bool ended;

	if (wait_ms > MOST_MS)
		wait_ms = MOST_MS;
	arguments = json_pack("{s:s, s:I}", "escalate", escalate, "wait_ms", (json_int_t)wait_ms);
	if (execution)
		json_object_set_new(arguments, "execution", json_integer(execution));
	if (grace_ms >= 0)
		json_object_set_new(arguments, "grace_ms", json_integer(grace_ms));
	if (pale_session_open(ref, &s, &err) < 0) {
		json_decref(arguments);
		return cli_session_fail(&err);
	}
	if (cli_session_call(s, "session.interrupt", arguments, wait_ms, &answer, &err) < 0)
		return cli_session_fail(&err);
	ended = !cli_int_at(answer, "execution") ||
		json_is_true(json_object_get(answer, "interrupted"));
	if (!json)
		print(answer, escalate);
	else if (cli_session_print_json(take_ptr(answer)) != 0)
		return CLI_EXIT_PALE;
	return cli_flushed(ended ? 0 : 1);
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args =
		CLI_ARGS(&cli_session_interrupt_command, argc, argv);
	const char *value, *ref, *escalate = "rollback";
	uint32_t execution = 0;
	int64_t grace_ms = -1;
	uint64_t ms;
	bool json = false;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_EXECUTION:
			if (cli_session_number("session interrupt", value, &execution) < 0)
				return CLI_EXIT_USAGE;
			break;
		case OPT_GRACE:
			if (cli_session_time("session interrupt", "--grace", value, &ms) < 0)
				return CLI_EXIT_USAGE;
			grace_ms = (int64_t)ms;
			break;
		case OPT_ESCALATE: escalate = value; break;
		case OPT_JSON: json = true; break;
		}
	if (id < 0)
		return args.status;
	if (strcmp(escalate, "none") != 0 && strcmp(escalate, "rollback") != 0 &&
	    strcmp(escalate, "restart") != 0)
		return cli_usage("session interrupt",
				 "--escalate %s: one of none, rollback, restart is meant",
				 QUOTED(escalate));
	id = cli_session_operand(&args, &ref);
	return id ? id : interrupt(ref, execution, grace_ms, escalate, json);
}

const struct cli_command cli_session_interrupt_command = {
	.name = "session interrupt",
	.summary = "end what a session executes, and keep the session",
	.usage = "[OPTION...] [SESSION]",
	.help = "Ends the execution that runs: it is asked to (SIGINT), and has a grace to do so. "
		"What does not\n"
		"end is taken back, if the state before it is held: variables are then as before "
		"it. Waits, and\n"
		"says how it ended.\n"
		"\n"
		"  pale session interrupt work\n"
		"  pale session interrupt work --grace 200ms --escalate restart\n"
		"\n" SESSION_HELP "\n"
		"\n"
		"Exit status: 0 if nothing of it runs any more; 1 if it goes on; 2 for wrong "
		"usage; "
		"125 if\n"
		"there is no such session, or Pale failed.\n",
	.options = options,
	.run = run,
};
