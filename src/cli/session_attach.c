/* pale session attach: an interactive prompt of a session. Runs with the caller's rights outside
 * any box, at its terminal. What the code prints is passed on as it comes, like that of `pale run
 * -t`; what completes and explains names is not, see session_edit.c. */
#include <string.h>

#include "base/str.h"
#include "cli/audit.h"
#include "cli/blocked.h"
#include "cli/session_edit.h"
#include "cli/session_front.h"
#include "cli/session_lines.h"

#define CODE_MAX (8u << 20)

enum { OPT_TIMEOUT = 1, OPT_DISPLAY, OPT_QUIET };
static const struct cli_option options[] = {
	{OPT_TIMEOUT, 0, "timeout", "TIME",
	 "end each execution after so long (default: limits.wall of the policy)", "any"},
	{OPT_DISPLAY, 0, "display", "DIR", "write what is shown (pictures, HTML) to files in DIR",
	 "dir"},
	{OPT_QUIET, 'q', "quiet", NULL, "no lines of Pale's own"},
	{0},
};

struct attach {
	const char *id, *name;
	char kernel[32];
	uint64_t timeout_ms;
	struct buf code; /* the lines so far */
	struct session_print print;
	struct session_front front;
	struct session_edit *edit;
};

/* Each time over a connection of its own: the session's supervisor closes those that were idle for
 * long when it has to. */
static int call(struct attach *a, const char *command, json_t *arguments, json_t **ret,
		struct pale_err *err)
{
	_cleanup_session_ struct pale_session *s = NULL;
	int r = pale_session_open(a->id, &s, err);

	*ret = NULL;
	if (r < 0) {
		json_decref(arguments);
		return r;
	}
	return cli_session_call(s, command, arguments, 0, ret, err);
}

/* ---- Tab ---- */

/* The lines so far and this one; how many characters come before it. */
static json_t *with_lines_before(struct attach *a, const char *line, size_t cursor,
				 size_t *ret_before)
{
	_cleanup_buf_ struct buf b = BUF_INIT(CODE_MAX);
	size_t n = 0;

	if (a->code.len)
		(void)!buf_addf(&b, "%s\n", a->code.data);
	for (size_t i = 0; i < b.len; i++)
		n += ((unsigned char)b.data[i] & 0xc0) != 0x80;
	(void)!buf_adds(&b, line);
	*ret_before = n;
	return b.failed ? NULL
			: json_pack("{s:s, s:I}", "code", b.data ? b.data : "", "cursor",
				    (json_int_t)(n + cursor));
}

static void complete(void *arg, const char *line, size_t cursor, struct session_matches *m)
{
	struct attach *a = arg;
	_cleanup_json_ json_t *answer = NULL, *reply = NULL;
	struct pale_err ignored;
	json_t *matches, *match, *o;
	size_t i, before;

	o = with_lines_before(a, line, cursor, &before);
	if (!o || call(a, "session.complete", o, &answer, &ignored) < 0)
		return;
	reply = json_loads(cli_string_at(answer, "data"), 0, NULL);
	matches = json_object_get(reply, "matches");
	if (!json_array_size(matches) || cli_int_at(reply, "start") < (json_int_t)before)
		return;
	m->start = (size_t)cli_int_at(reply, "start") - before;
	m->texts = calloc(json_array_size(matches), sizeof(*m->texts));
	json_array_foreach(matches, i, match)
	{
		const char *text = json_string_value(match);

		if (m->texts && text && (m->texts[m->n] = strdup(text)))
			m->n++;
	}
}

static char *inspect(void *arg, const char *line, size_t cursor)
{
	struct attach *a = arg;
	_cleanup_json_ json_t *answer = NULL;
	struct pale_err ignored;
	size_t before;
	json_t *o = with_lines_before(a, line, cursor, &before);

	if (!o || call(a, "session.inspect", o, &answer, &ignored) < 0)
		return NULL;
	return strdup(cli_string_at(answer, "data"));
}

/* "?name", "name?": the name, for the caller to free. */
static char *asks_about(const char *line)
{
	size_t len;

	line += strspn(line, " ");
	len = strlen(line);
	while (len && line[len - 1] == ' ')
		len--;
	if (len > 1 && line[0] == '?')
		return strndup(line + 1, len - 1);
	if (len > 1 && line[len - 1] == '?' && !memchr(line, ' ', len))
		return strndup(line, len - 1);
	return NULL;
}

static void explain(struct attach *a, const char *name)
{
	_cleanup_json_ json_t *answer = NULL;
	struct pale_err err = {0};
	size_t len = 0;
	const char *text;

	for (const char *c = name; *c; c++)
		len += ((unsigned char)*c & 0xc0) != 0x80;
	if (call(a, "session.inspect",
		 json_pack("{s:s, s:I}", "code", name, "cursor", (json_int_t)len), &answer,
		 &err) < 0) {
		cli_say(&err);
		return;
	}
	text = cli_string_at(answer, "data");
	session_edit_print(*text ? text : "nothing is known of it");
}

/* ---- the prompt ---- */

static const char *first_prompt(const char *kernel)
{
	if (strcmp(kernel, "node") == 0)
		return "> ";
	return strcmp(kernel, "bash") == 0 ? "$ " : ">>> ";
}

/* Executes the lines so far. False: the session is no more. */
static bool execute(struct attach *a)
{
	_cleanup_session_ struct pale_session *s = NULL;
	struct pale_err err = {0};
	bool there = pale_session_open(a->id, &s, &err) == 0;

	if (!there && err.code == PALE_E_NOTFOUND) {
		fprintf(stderr, "pale: the session has ended: `pale audit show %s` tells how\n",
			a->id);
	} else if (!there) {
		cli_say(&err);
	} else if (session_front_exec(&a->front, s, a->code.data, a->code.len, a->timeout_ms, 0) ==
		   CLI_EXIT_PALE) {
		pale_session_close(take_ptr(s));
		there = pale_session_open(a->id, &s, &err) == 0;
	}
	session_print_end_line(&a->print);
	a->code.len = 0;
	return there;
}

/* One line more. False: the session is no more. */
static bool take_line(struct attach *a, const char *line, bool more)
{
	_cleanup_free_ char *name = a->code.len ? NULL : asks_about(line);

	if (name && !more) {
		explain(a, name);
		return true;
	}
	if (!a->code.len && !line[strspn(line, " \t")])
		return true;
	if (buf_addf(&a->code, "%s%s", a->code.len ? "\n" : "", line) < 0) {
		fprintf(stderr, "pale: that is too much at once\n");
		a->code.len = 0;
		a->code.failed = false;
		return true;
	}
	if (more || session_lines_open(a->kernel, a->code.data, a->code.len))
		return true;
	return execute(a);
}

static int loop(struct attach *a)
{
	bool there = true;

	while (there) {
		const char *line;

		switch (session_edit_read(a->edit, a->code.len ? "... " : first_prompt(a->kernel),
					  &line)) {
		case EDIT_LINE: there = take_line(a, line, false); break;
		case EDIT_PASTED: there = take_line(a, line, true); break;
		case EDIT_CANCELLED: a->code.len = 0; break;
		case EDIT_END:
			if (a->code.len) {
				there = execute(a);
				break;
			}
			if (!a->print.quiet)
				fprintf(stderr,
					"pale: the session goes on: `pale session attach %s`, or "
					"`pale session rm %s`\n",
					a->name, a->name);
			return 0;
		case EDIT_SIGNAL: return 0;
		}
	}
	return CLI_EXIT_PALE;
}

static int begin(struct attach *a, const char *ref, struct pale_err *err)
{
	_cleanup_json_ json_t *shown = NULL;
	struct session_edit_config config = {
		.more = "... ", .complete = complete, .inspect = inspect, .arg = a};
	char history[64];
	int r = call(a, "session.show", NULL, &shown, err);

	if (r < 0)
		return r;
	a->name = ref ? ref : a->id;
	snprintf(a->kernel, sizeof(a->kernel), "%s", cli_string_at(shown, "kernel"));
	a->front.id = a->id;
	a->front.name = a->name;
	a->front.print = &a->print;
	a->front.owner = a->front.input = true;
	r = session_front_begin(&a->front, err);
	if (r < 0)
		return r;
	snprintf(history, sizeof(history), "history-%s", a->kernel);
	config.history = strchr(a->kernel, '/') ? NULL : history;
	config.signals = a->front.signals;
	if (!a->print.quiet) {
		cli_print_escaped(stderr, cli_string_at(shown, "banner"));
		fprintf(stderr, "; Ctrl-D leaves, and the session goes on\n");
	}
	return session_edit_new(&config, &a->edit, err);
}

/* Not at a terminal: as `pale session exec SESSION -`. */
static int execute_all(struct attach *a, struct pale_session *s)
{
	struct pale_err err = {0};
	int r = buf_read_fd(&a->code, STDIN_FILENO);

	if (r < 0) {
		err_set(&err, PALE_E_USAGE, "cli", -r, "cannot read the code from standard input");
		return cli_fail_as(&err, CLI_EXIT_USAGE);
	}
	a->front.id = a->id;
	a->front.name = a->name;
	a->front.print = &a->print;
	a->front.owner = true;
	if (session_front_begin(&a->front, &err) < 0)
		return cli_fail(&err);
	return session_front_exec(&a->front, s, a->code.len ? a->code.data : "", a->code.len,
				  a->timeout_ms, 0);
}

static int attach(struct attach *a, const char *ref)
{
	_cleanup_session_ struct pale_session *s = NULL;
	struct pale_err err = {0};
	char id[PALE_ID_SIZE];
	int status;

	a->code = BUF_INIT(CODE_MAX);
	if (pale_session_open(ref, &s, &err) < 0)
		return cli_session_fail(&err);
	memcpy(id, pale_session_id(s), sizeof(id));
	a->id = a->name = id;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		status = execute_all(a, s);
	} else {
		pale_session_close(take_ptr(s));
		status = begin(a, ref, &err) < 0 ? cli_session_fail(&err) : loop(a);
	}
	session_edit_free(a->edit);
	session_front_done(&a->front);
	buf_done(&a->code);
	return status;
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_session_attach_command, argc, argv);
	struct attach a = {.front = {.epoll = -1, .signals = -1, .timer = -1}};
	const char *value, *ref;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_TIMEOUT:
			if (cli_session_time("session attach", "--timeout", value, &a.timeout_ms) <
			    0)
				return CLI_EXIT_USAGE;
			break;
		case OPT_DISPLAY: a.print.display_dir = value; break;
		case OPT_QUIET: a.print.quiet = true; break;
		}
	if (id < 0)
		return args.status;
	id = cli_session_operand(&args, &ref);
	return id ? id : attach(&a, ref);
}

const struct cli_command cli_session_attach_command = {
	.name = "session attach",
	.summary = "an interactive prompt of a session",
	.usage = "[OPTION...] [SESSION]",
	.help = "Gives the interpreter's prompt: what is typed is executed in the session, whose "
		"variables are\n"
		"there. Without SESSION, in the only one that runs. Several may be attached; what "
		"they execute\n"
		"comes one after the other.\n"
		"\n"
		"  Tab              completes a name; at the beginning of a line, steps in\n"
		"  Shift-Tab, ?name says what is known of a name\n"
		"  Ctrl-C           interrupts what runs, or gives the line up\n"
		"  Ctrl-D           leaves; the session goes on\n"
		"\n"
		"A block goes on until an empty line. What is pasted is executed when Enter is "
		"pressed. Lines are\n"
		"remembered in history-KERNEL in ~/.local/state/pale ($XDG_STATE_HOME/pale). If "
		"standard input\n"
		"is no terminal, all of it is executed as by `pale session exec SESSION -`.\n"
		"\n" SESSION_HELP "\n"
		"\n"
		"Exit status: 0; 125 if there is no such session, or it ends, or Pale failed; "
		"without a\n"
		"terminal, that of `pale session exec`.\n",
	.options = options,
	.run = run,
};
