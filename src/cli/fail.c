/* What a command says when it does not do what was asked: a line for people, and with --json an
 * object in the place of the result. Messages are escaped where they are made. */
#include "cli.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>

static const struct cli_command *current;
static char *const *unread;
static bool wants_json;

void cli_begin(const struct cli_command *command, char *const *argv)
{
	current = command;
	unread = argv;
	wants_json = false;
}

void cli_begin_done(void)
{
	unread = NULL;
}

void cli_json(void)
{
	wants_json = true;
}

/* What is wrong with an option may stand before --json, and what lies between is not understood. */
static void look_for_json(void)
{
	bool known = false;

	for (const struct cli_option *o = current ? current->options : NULL; o && o->name; o++)
		known |= strcmp(o->name, "json") == 0;
	for (char *const *word = unread; known && word && *word; word++) {
		if (strcmp(*word, "--") == 0)
			return;
		wants_json |= strcmp(*word, "--json") == 0;
	}
}

/* One line: some commands print an object a line. */
static void print_error(const char *stage, const char *message, int status)
{
	json_t *o = json_object();

	/* A program that reads a result finds the same keys as in that of a run. */
	if (current->json_result) {
		json_object_set_new(o, "outcome", json_string("failed"));
		json_object_set_new(o, "summary", json_string(message));
		json_object_set_new(o, "exit_status", json_integer(status));
	}
	json_object_set_new(o, "error", json_pack("{ss ss}", "stage", stage, "message", message));
	if (!o || json_dumpf(o, stdout, JSON_ENSURE_ASCII) < 0 || putchar('\n') == EOF ||
	    fflush(stdout) != 0)
		fprintf(stderr, "pale: cannot print the result\n");
	json_decref(o);
}

void cli_say(const struct pale_err *err)
{
	fprintf(stderr, "pale: %s: %s\n", err->stage, err->message);
}

int cli_fail_as(const struct pale_err *err, int status)
{
	cli_say(err);
	if (err->sys == ENOSYS)
		fprintf(stderr, "pale: this kernel does not have that system call, or a container "
				"around refuses it; `pale doctor` says what is missing\n");
	if (wants_json)
		print_error(err->stage, err->message, status);
	return status;
}

int cli_fail(const struct pale_err *err)
{
	return cli_fail_as(err, CLI_EXIT_PALE);
}

int cli_usage(const char *command, const char *fmt, ...)
{
	int status = current && current->usage_status ? current->usage_status : CLI_EXIT_USAGE;
	char message[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	fprintf(stderr, "pale%s%s: %s\nTry `pale%s%s --help`.\n", *command ? " " : "", command,
		message, *command ? " " : "", command);
	look_for_json();
	if (wants_json)
		print_error("cli", message, status);
	return status;
}
