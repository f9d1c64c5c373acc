/* What the files of `pale session` share. */
#pragma once

#include <jansson.h>

#include "cli/cli.h"

extern const struct cli_command cli_session_command, cli_session_new_command,
	cli_session_exec_command, cli_session_attach_command, cli_session_output_command,
	cli_session_interrupt_command, cli_session_ls_command, cli_session_show_command,
	cli_session_undo_command, cli_session_restart_command, cli_session_freeze_command,
	cli_session_thaw_command, cli_session_rm_command, cli_session_cp_command;

/* What SESSION can be, for the help texts. */
#define SESSION_HELP                                                                               \
	"SESSION is a session's name, its id, a unique beginning of one, or `last`, the newest.\n" \
	"`pale session ls` lists them."

static inline void cli_session_closep(struct pale_session **s)
{
	pale_session_close(*s);
}
#define _cleanup_session_ _cleanup_(cli_session_closep)

static inline void cli_json_decrefp(json_t **o)
{
	json_decref(*o);
}
#define _cleanup_json_ _cleanup_(cli_json_decrefp)

/* Any command of the control protocol. arguments are stolen, NULL: none; *ret is a new reference,
 * and may be NULL. */
int cli_session_call(struct pale_session *s, const char *command, json_t *arguments,
		     uint64_t wait_ms, json_t **ret, struct pale_err *err) _must_check_;
/* What an execution (0: the newest) printed and showed so far, from its event `from` on: *ret is
 * the last answer, with all events. */
int cli_session_events(struct pale_session *s, uint32_t execution, uint64_t from, json_t **ret,
		       struct pale_err *err) _must_check_;
/* Says what failed. 2: what was asked is wrong; 1: it was not done; 125: there is no such session,
 * or Pale failed. */
int cli_session_fail(const struct pale_err *err);
/* The only operand of a command that has one, or NULL: the only session that runs. Not 0: too many;
 * the exit status, after it was told. */
int cli_session_operand(const struct cli_args *args, const char **ret);
/* The number of an execution; 0 or a negative code, after it was told. */
int cli_session_number(const char *command, const char *text, uint32_t *ret);
/* A duration; the same. what: the option. */
int cli_session_time(const char *command, const char *what, const char *text, uint64_t *ret_ms);

json_int_t cli_int_at(const json_t *o, const char *key);
/* Prints o, which it releases, on a line; the exit status. */
int cli_session_print_json(json_t *o);
/* The text to stdout, escaped: it may come from a box. */
void cli_print_escaped(FILE *f, const char *text);
