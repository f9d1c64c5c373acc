/* The pale command: finds the subcommand and calls it. Trusted input only (the caller's). */
#include "cli.h"

#include <string.h>

const struct cli_command *const cli_commands[] = {
	NULL,
};

int cli_fail(const struct pale_err *err)
{
	fprintf(stderr, "pale: %s: %s\n", err->stage, err->message);
	return CLI_EXIT_PALE;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && cli_commands[i]; i++)
		if (strcmp(argv[1], cli_commands[i]->name) == 0)
			return cli_commands[i]->run(argc - 1, argv + 1);
	fprintf(stderr, "usage: pale COMMAND [ARG...]\n");
	return 2;
}
