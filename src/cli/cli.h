/* The command line: one small file a subcommand, each described by one struct cli_command from
 * which come its parser, its --help, its man page and its shell completion (`pale
 * --dump-commands`). argv[0] of run() is the subcommand's name; the return value is the exit
 * status. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/options.h"

struct cli_command {
	const char *name;    /* as typed after `pale`: "run", or "policy check" in a group */
	const char *summary; /* one line for `pale --help` */
	const char *usage;   /* what follows the name: "[OPTION...] [RUN] [PATH...]" */
	const char *help; /* paragraphs for `pale NAME --help`, after the usage line and before the
			   * options, with examples; lines are printed as they are */
	const struct cli_option *options;	      /* up to a row without a name; or NULL */
	const struct cli_command *const *subcommands; /* a group: NULL-terminated, run is NULL */
	bool policy_flags;    /* also takes -p, --ro, --memory ...: see cli_policy() */
	bool stop_at_operand; /* options end at the first operand: the rest is the code's */
	bool json_result;     /* --json prints a run's result (docs/result.md) */
	int usage_status;     /* exit status for wrong usage; 0 means 2 */
	int (*run)(int argc, char **argv);
};

extern const struct cli_command *const cli_commands[]; /* NULL-terminated; main.c */

/* Finds argv[1] in the table, or in the group's table, and runs it; the exit status. */
int cli_dispatch(const struct cli_command *const *commands, int argc, char **argv);

/* Exit statuses besides the command's own; the same as enum pale_code says it. */
#define CLI_EXIT_LIMIT 124
#define CLI_EXIT_PALE  125
#define CLI_EXIT_USAGE 2

/* Which command it is that fails, and that it was asked for JSON; from cli_next(). argv, which is
 * NULL-terminated: the line, until all of its options were read. */
void cli_begin(const struct cli_command *command, char *const *argv);
void cli_json(void);
void cli_begin_done(void);
/* Prints "pale: stage: message" to stderr. */
void cli_say(const struct pale_err *err);
/* The same, and with --json {"error": {"stage", "message"}} on a line of stdout; returns status, or
 * 125. */
int cli_fail_as(const struct pale_err *err, int status);
int cli_fail(const struct pale_err *err);
/* Prints "pale NAME: what" and how to get help, likewise; returns the command's usage_status. */
int cli_usage(const char *command, const char *fmt, ...) _printf_(2, 3);
/* After a run, lines for people on stderr: which limits were hit, what was blocked, and so on. */
void cli_print_summary(struct pale_result *r);
/* Colour only if f is a terminal, NO_COLOR is not set and TERM is not dumb. */
bool cli_colour(FILE *f);
