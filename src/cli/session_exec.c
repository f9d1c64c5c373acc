/* pale session exec: executes code in a session, and waits for its end. Runs with the caller's
 * rights outside any box. Trusted: the command line, and the code as far as it is only passed on.
 */
#include <fcntl.h>
#include <string.h>

#include "base/str.h"
#include "cli/audit.h"
#include "cli/session_front.h"

#define CODE_MAX (16u << 20)

enum {
	OPT_CODE = 1,
	OPT_TIMEOUT,
	OPT_ROLLBACK,
	OPT_NO_ROLLBACK,
	OPT_BACKGROUND,
	OPT_INPUT,
	OPT_DISPLAY,
	OPT_JSON,
	OPT_STREAM,
	OPT_QUIET,
};
static const struct cli_option options[] = {
	{OPT_CODE, 'c', "code", "CODE", "execute CODE instead of a file", "any"},
	{OPT_TIMEOUT, 0, "timeout", "TIME",
	 "end it after so long (default: limits.wall of the policy)", "any"},
	{OPT_ROLLBACK, 0, "rollback", NULL, "hold the state before it, so that it can come back"},
	{OPT_NO_ROLLBACK, 0, "no-rollback", NULL, "do not, whatever the policy says"},
	{OPT_BACKGROUND, 'b', "background", NULL,
	 "print its number and leave; `pale session output` shows what it prints"},
	{OPT_INPUT, 'i', "input", NULL,
	 "answer what the code asks for from standard input (as is done if that is a terminal)"},
	{OPT_DISPLAY, 0, "display", "DIR",
	 "write what it shows (pictures, HTML) to files in DIR: exec-N-M.png", "dir"},
	{OPT_JSON, 0, "json", NULL,
	 "print one JSON object at its end, with the result and all events"},
	{OPT_STREAM, 0, "stream", NULL,
	 "print a JSON object a line as things come, the result last"},
	{OPT_QUIET, 'q', "quiet", NULL, "no lines of Pale's own"},
	{0},
};

/* What the line says. */
struct asked {
	const char *session, *code, *file;
	uint64_t timeout_ms;
	int rollback;
	bool background, input;
};

static int read_code(const struct asked *a, struct buf *b, struct pale_err *err)
{
	_cleanup_close_ int fd = -1;
	bool in = a->file && strcmp(a->file, "-") == 0;
	int r;

	if (a->code)
		return buf_adds(b, a->code) < 0
			       ? err_set(err, PALE_E_USAGE, "cli", 0, "the code is too long")
			       : 0;
	if (!in)
		fd = open(a->file, O_RDONLY | O_CLOEXEC);
	if (!in && fd < 0)
		return err_set(err, PALE_E_USAGE, "cli", errno, "cannot read %s", QUOTED(a->file));
	r = buf_read_fd(b, in ? STDIN_FILENO : fd);
	if (r < 0)
		return err_set(err, PALE_E_USAGE, "cli", -r, "cannot read %s%s",
			       in ? "the code from standard input" : QUOTED(a->file),
			       r == -ENOSPC ? ": it is longer than 16 MiB" : "");
	return 0;
}

/* Leaves at once. */
static int in_background(struct pale_session *s, const struct asked *a, const struct buf *code,
			 bool json)
{
	_cleanup_json_ json_t *answer = NULL;
	json_t *o =
		json_pack("{s:o?}", "code", json_stringn(code->len ? code->data : "", code->len));
	struct pale_err err = {0};

	if (!json_object_get(o, "code")) {
		json_decref(o);
		err_set(&err, PALE_E_USAGE, "cli", 0, "the code is not UTF-8");
		return cli_fail_as(&err, CLI_EXIT_USAGE);
	}
	if (a->timeout_ms)
		json_object_set_new(o, "timeout_ms", json_integer((json_int_t)a->timeout_ms));
	if (a->rollback)
		json_object_set_new(o, "rollback", json_boolean(a->rollback > 0));
	if (cli_session_call(s, "session.exec", o, 0, &answer, &err) < 0)
		return cli_fail_as(&err, err.code == PALE_E_USAGE ? CLI_EXIT_USAGE : CLI_EXIT_PALE);
	if (json)
		return cli_session_print_json(json_pack("{s:O, s:O}", "execution",
							json_object_get(answer, "execution"),
							"state", json_object_get(answer, "state")));
	printf("%lld\n", (long long)cli_int_at(answer, "execution"));
	return cli_flushed(0);
}

static int execute(const struct asked *a, struct session_print *print)
{
	_cleanup_session_ struct pale_session *s = NULL;
	_cleanup_buf_ struct buf code = BUF_INIT(CODE_MAX);
	struct session_front f = {.name = a->session, .print = print, .owner = true};
	struct pale_err err = {0};
	int status;

	/* Before anything is waited for: whether there is such a session. */
	if (pale_session_open(a->session, &s, &err) < 0)
		return cli_fail_as(&err, err.code == PALE_E_USAGE ? CLI_EXIT_USAGE : CLI_EXIT_PALE);
	if (read_code(a, &code, &err) < 0)
		return cli_fail_as(&err, CLI_EXIT_USAGE);
	if (a->background)
		return in_background(s, a, &code, print->form != SESSION_TEXT);
	f.id = pale_session_id(s);
	f.input = a->input;
	if (session_front_begin(&f, &err) < 0)
		return cli_fail(&err);
	status = session_front_exec(&f, s, code.data ? code.data : "", code.len, a->timeout_ms,
				    a->rollback);
	session_front_done(&f);
	return status;
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_session_exec_command, argc, argv);
	struct session_print print = {0};
	struct asked a = {.input = isatty(STDIN_FILENO)};
	bool json = false, stream = false, input = false;
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_CODE: a.code = value; break;
		case OPT_TIMEOUT:
			if (cli_session_time("session exec", "--timeout", value, &a.timeout_ms) < 0)
				return CLI_EXIT_USAGE;
			if (!a.timeout_ms)
				return cli_usage("session exec", "--timeout 0: that is no time");
			break;
		case OPT_ROLLBACK: a.rollback = 1; break;
		case OPT_NO_ROLLBACK: a.rollback = -1; break;
		case OPT_BACKGROUND: a.background = true; break;
		case OPT_INPUT: input = true; break;
		case OPT_DISPLAY: print.display_dir = value; break;
		case OPT_JSON: json = true; break;
		case OPT_STREAM:
			stream = true;
			cli_json();
			break;
		case OPT_QUIET: print.quiet = true; break;
		}
	if (id < 0)
		return args.status;
	if (!args.argc)
		return cli_usage("session exec", "in which session? `pale session ls` lists them");
	a.session = args.argv[0];
	a.file = args.argc > 1 ? args.argv[1] : NULL;
	if (args.argc > 2)
		return cli_usage("session exec", "one file at a time: %s", QUOTED(args.argv[2]));
	if (a.code && a.file)
		return cli_usage("session exec", "-c and a file exclude each other");
	if (!a.code && !a.file)
		return cli_usage("session exec",
				 "nothing to execute: give -c CODE, name a file, or "
				 "say - for code on standard input");
	if (json && stream)
		return cli_usage("session exec", "--json and --stream exclude each other");
	if (a.background && (input || print.display_dir || stream))
		return cli_usage("session exec", "--background leaves at once: nothing can be "
						 "shown, written or answered");
	if (input && a.file && strcmp(a.file, "-") == 0 && !isatty(STDIN_FILENO))
		return cli_usage("session exec", "code and its input cannot both come by standard "
						 "input");
	print.form = json ? SESSION_JSON : stream ? SESSION_STREAM : SESSION_TEXT;
	a.input |= input;
	return execute(&a, &print);
}

const struct cli_command cli_session_exec_command = {
	.name = "session exec",
	.summary = "execute code in a session",
	.usage = "[OPTION...] SESSION -c CODE|FILE|-",
	.help = "Executes code, and passes on what it prints as it comes; the value of a last "
		"expression is\n"
		"printed, as at an interpreter's prompt. Variables and files stay for the next "
		"one. Ctrl-C\n"
		"interrupts it and keeps the session; a second one ends it with all variables, if "
		"need be; a\n"
		"third leaves it alone. Where another execution runs, it waits for its turn.\n"
		"\n"
		"  pale session exec work -c 'import math; math.pi'\n"
		"  pale session exec work analyse.py --timeout 5m --display plots\n"
		"  generate | pale session exec work --json -\n"
		"\n" SESSION_HELP "\n"
		"\n"
		"Exit status:\n"
		"  0    it is done; of bash, the status of its last command\n"
		"  1    it ended with an error\n"
		"  N    it ended the interpreter with exit(N)\n"
		"  124  a limit ended it: its time, its processor time, its output, the memory\n"
		"  125  there is no such session, or it ended meanwhile, or Pale failed\n"
		"  128+N the interpreter was killed by signal N\n"
		"  130  it was interrupted\n",
	.options = options,
	.run = run,
};
