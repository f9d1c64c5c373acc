/* The command line: one small file a subcommand, each with this signature. argv[0] is the
 * subcommand's name; the return value is the exit status. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

struct cli_command {
	const char *name;
	const char *summary; /* one line for `pale --help` */
	const char *help;    /* the whole text for `pale NAME --help`, with examples */
	int (*run)(int argc, char **argv);
};

extern const struct cli_command *const cli_commands[]; /* NULL-terminated; main.c */

/* Exit statuses besides the command's own; the same as enum pale_code says it. */
#define CLI_EXIT_LIMIT 124
#define CLI_EXIT_PALE  125

/* Prints "pale: stage: message" to stderr and returns the exit status for err. */
int cli_fail(const struct pale_err *err);
/* Prints "pale NAME: what" and how to get help, and returns 2. */
int cli_usage(const char *command, const char *fmt, ...) _printf_(2, 3);
/* Colour only if f is a terminal, NO_COLOR is not set and TERM is not dumb. */
bool cli_colour(FILE *f);
