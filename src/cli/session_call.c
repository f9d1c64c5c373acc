/* pale session undo, restart, freeze, thaw: one request to a session each. Runs with the caller's
 * rights outside any box. */
#include "cli/session.h"

#include <string.h>

#include "base/str.h"
#include "cli/audit.h"
#include "cli/session_print.h"

enum { OPT_JSON = 1 };
static const struct cli_option options[] = {
	{OPT_JSON, 0, "json", NULL, "print the answer as JSON"},
	{0},
};

/* Reads the line and asks; *ret is the answer, to be printed by the caller, or NULL: return the
 * status. */
static int ask(const struct cli_command *command, int argc, char **argv, const char *what,
	       json_t **ret)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(command, argc, argv);
	_cleanup_session_ struct pale_session *s = NULL;
	_cleanup_json_ json_t *answer = NULL;
	struct pale_err err = {0};
	const char *value, *ref;
	bool json = false;
	int id;

	*ret = NULL;
	while ((id = cli_next(&args, &value)) > 0)
		json = true;
	if (id < 0)
		return args.status;
	id = cli_session_operand(&args, &ref);
	if (id)
		return id;
	if (pale_session_open(ref, &s, &err) < 0 ||
	    cli_session_call(s, what, NULL, 0, &answer, &err) < 0)
		return cli_session_fail(&err);
	if (json)
		return cli_session_print_json(take_ptr(answer));
	*ret = take_ptr(answer);
	return 0;
}

static int undo_run(int argc, char **argv)
{
	_cleanup_json_ json_t *answer = NULL;
	char back[SESSION_BACK];
	int status = ask(&cli_session_undo_command, argc, argv, "session.undo", &answer);

	if (!answer)
		return status;
	printf("execution %lld was undone: variables%s\n", (long long)cli_int_at(answer, "undone"),
	       session_print_back(answer, back));
	return cli_flushed(0);
}

const struct cli_command cli_session_undo_command = {
	.name = "session undo",
	.summary = "take a session's variables and files back to before the last execution",
	.usage = "[OPTION...] [SESSION]",
	.help = "Brings back the state that the interpreter had before the last execution, and the "
		"files in the\n"
		"box's writable places. What it sent stays sent. Where the state was not held "
		"(another kernel\n"
		"than Python's, threads that run, --no-rollback), it says why, and nothing is "
		"changed; where\n"
		"the files were not kept (docs/sessions.md), only variables go back.\n"
		"\n"
		"  pale session undo work\n"
		"\n" SESSION_HELP "\n"
		"\n"
		"Exit status: 0; 1 if it cannot be undone; 125 if there is no such session, or "
		"Pale "
		"failed.\n",
	.options = options,
	.run = undo_run,
};

static int restart_run(int argc, char **argv)
{
	_cleanup_json_ json_t *answer = NULL;
	int status = ask(&cli_session_restart_command, argc, argv, "session.restart", &answer);

	if (!answer)
		return status;
	printf("a fresh interpreter: variables are gone, files are there\n");
	return cli_flushed(0);
}

const struct cli_command cli_session_restart_command = {
	.name = "session restart",
	.summary = "begin with a fresh interpreter in the same box",
	.usage = "[OPTION...] [SESSION]",
	.help = "Ends the interpreter and begins with a fresh one: variables are gone, files are "
		"there. While\n"
		"something runs, `pale session interrupt --escalate restart` does it.\n"
		"\n" SESSION_HELP "\n"
		"\n"
		"Exit status: 0; 1 if something runs; 125 if there is no such session, or Pale "
		"failed.\n",
	.options = options,
	.run = restart_run,
};

static int freeze_run(int argc, char **argv)
{
	_cleanup_json_ json_t *answer = NULL;
	int status = ask(&cli_session_freeze_command, argc, argv, "box.freeze", &answer);

	if (!answer)
		return status;
	printf("frozen: nothing in it runs until `pale session thaw`\n");
	return cli_flushed(0);
}

const struct cli_command cli_session_freeze_command = {
	.name = "session freeze",
	.summary = "let all of a session stand still",
	.usage = "[OPTION...] [SESSION]",
	.help = "Stops every process of the session until `pale session thaw`. Time-outs and the "
		"idle time\n"
		"stand still with it; its memory stays taken. It can be removed meanwhile.\n"
		"\n" SESSION_HELP "\n"
		"\n"
		"Exit status: 0; 125 if there is no such session, or Pale failed.\n",
	.options = options,
	.run = freeze_run,
};

static int thaw_run(int argc, char **argv)
{
	_cleanup_json_ json_t *answer = NULL;
	int status = ask(&cli_session_thaw_command, argc, argv, "box.thaw", &answer);

	if (!answer)
		return status;
	printf("it goes on\n");
	return cli_flushed(0);
}

const struct cli_command cli_session_thaw_command = {
	.name = "session thaw",
	.summary = "let a frozen session go on",
	.usage = "[OPTION...] [SESSION]",
	.help = "Lets what `pale session freeze` stopped go on.\n"
		"\n" SESSION_HELP "\n"
		"\n"
		"Exit status: 0; 125 if there is no such session, or Pale failed.\n",
	.options = options,
	.run = thaw_run,
};
