/* pale session: boxes that stay, with an interpreter in them. The group, and what its commands
 * share. Runs with the caller's rights, outside any box, and speaks to the sessions' supervisors;
 * what they tell may come from a box, and what of it is printed in our own lines is escaped. */
#include "cli/session.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "cli/audit.h"

static const struct cli_command *const subcommands[] = {
	&cli_session_new_command,	&cli_session_exec_command,
	&cli_session_attach_command,	&cli_session_output_command,
	&cli_session_interrupt_command, &cli_session_ls_command,
	&cli_session_show_command,	&cli_session_cp_command,
	&cli_session_undo_command,	&cli_session_restart_command,
	&cli_session_freeze_command,	&cli_session_thaw_command,
	&cli_session_rm_command,	NULL,
};

const struct cli_command cli_session_command = {
	.name = "session",
	.summary = "boxes that stay, with a live interpreter in them",
	.usage = "COMMAND [ARG...]",
	.help = "A session is a box with an interpreter in it that executes one piece of code "
		"after the\n"
		"other and keeps its variables and files, until it is removed, or was not used "
		"for long.\n"
		"A time-out, an interrupt or a crash ends an execution, not the session.\n"
		"\n"
		"  pale session new --name work\n"
		"  pale session exec work -c 'x = 6 * 7'\n"
		"  pale session exec work -c 'x'\n"
		"  pale session rm work\n"
		"\n" SESSION_HELP "\n",
	.subcommands = subcommands,
};

int cli_session_call(struct pale_session *s, const char *command, json_t *arguments,
		     uint64_t wait_ms, json_t **ret, struct pale_err *err)
{
	_cleanup_free_ char *text = arguments ? json_dumps(arguments, JSON_COMPACT) : NULL;
	_cleanup_free_ char *answer = NULL;
	bool nomem = arguments && !text;
	int r;

	json_decref(arguments);
	if (nomem)
		return err_nomem(err, "cli");
	r = pale_session_call(s, command, text, wait_ms, ret ? &answer : NULL, err);
	if (r < 0 || !ret)
		return r;
	*ret = json_loads(answer, JSON_ALLOW_NUL, NULL);
	return *ret ? 0 : err_nomem(err, "cli");
}

int cli_session_events(struct pale_session *s, uint32_t execution, uint64_t from, json_t **ret,
		       struct pale_err *err)
{
	_cleanup_json_ json_t *events = json_array(), *answer = NULL;
	json_int_t next = (json_int_t)from;

	do {
		json_t *o = json_pack("{s:I}", "from", next);
		int r;

		if (execution)
			json_object_set_new(o, "execution", json_integer(execution));
		json_decref(take_ptr(answer));
		r = cli_session_call(s, "session.output", o, 0, &answer, err);
		if (r < 0)
			return r;
		json_array_extend(events, json_object_get(answer, "events"));
		execution = (uint32_t)cli_int_at(answer, "execution");
		next = cli_int_at(answer, "next");
	} while (json_is_true(json_object_get(answer, "more")));
	json_object_set(answer, "events", events);
	json_object_del(answer, "more");
	*ret = take_ptr(answer);
	return 0;
}

int cli_session_fail(const struct pale_err *err)
{
	switch (err->code) {
	case PALE_E_USAGE:
	case PALE_E_POLICY: return cli_fail_as(err, CLI_EXIT_USAGE);
	case PALE_E_CONFLICT:
	case PALE_E_HOST: return cli_fail_as(err, 1);
	default: return cli_fail(err);
	}
}

int cli_session_operand(const struct cli_args *args, const char **ret)
{
	if (args->argc > 1)
		return cli_usage(args->command->name, "one session at a time: %s",
				 QUOTED(args->argv[1]));
	*ret = args->argc ? args->argv[0] : NULL;
	return 0;
}

int cli_session_number(const char *command, const char *text, uint32_t *ret)
{
	uint64_t n;

	if (num_parse_u64(text, UINT32_MAX, &n) < 0 || n == 0) {
		cli_usage(command, "%s: the number of an execution is meant", QUOTED(text));
		return -PALE_E_USAGE;
	}
	*ret = (uint32_t)n;
	return 0;
}

int cli_session_time(const char *command, const char *what, const char *text, uint64_t *ret_ms)
{
	if (num_parse_duration(text, ret_ms) == 0)
		return 0;
	cli_usage(command, "%s %s: a time is meant, such as 30s, 250ms or 5m", what, QUOTED(text));
	return -PALE_E_USAGE;
}

json_int_t cli_int_at(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

int cli_session_print_json(json_t *o)
{
	return cli_json_line(o) < 0 ? cli_flushed(CLI_EXIT_PALE) : cli_flushed(0);
}

void cli_print_escaped(FILE *f, const char *text)
{
	while (*text) {
		_cleanup_buf_ struct buf b = BUF_INIT(4 << 20);
		size_t len = strcspn(text, "\"\\");

		/* Not between quotes, these are what they are. */
		str_escape(&b, text, len);
		if (b.data)
			fputs(b.data, f);
		text += len;
		if (*text)
			fputc(*text++, f);
	}
}
