/* The pale command: finds the subcommand and calls it. Trusted input only (the caller's). */
#include "cli.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/workspace.h"
#include "cli/audit.h"

/* One line a subcommand, in the order of `pale --help`. */
extern const struct cli_command cli_policy_command;
extern const struct cli_command cli_run_command;
extern const struct cli_command cli_explain_command;
extern const struct cli_command cli_doctor_command;
extern const struct cli_command cli_verify_command;
extern const struct cli_command cli_network_command;
extern const struct cli_command cli_session_command;
extern const struct cli_command cli_pool_command;
extern const struct cli_command cli_kernelspec_command;
extern const struct cli_command cli_jupyter_kernel_command;

const struct cli_command *const cli_commands[] = {
	&cli_run_command,	 &cli_session_command,	      &cli_explain_command,
	&cli_doctor_command,	 &cli_verify_command,	      &cli_network_command,
	&cli_diff_command,	 &cli_apply_command,	      &cli_discard_command,
	&cli_audit_command,	 &cli_policy_command,	      &cli_pool_command,
	&cli_kernelspec_command, &cli_jupyter_kernel_command, NULL,
};

bool cli_colour(FILE *f)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return (!no || !*no) && term && strcmp(term, "dumb") != 0 && isatty(fileno(f));
}

/* The last word of "policy check". */
static const char *last_word(const struct cli_command *command)
{
	const char *space = strrchr(command->name, ' ');

	return space ? space + 1 : command->name;
}

/* "policy" of "policy check"; "" at the top. */
static void group_name(char out[static 64], const struct cli_command *const *commands)
{
	const char *name = commands[0] ? commands[0]->name : "";
	const char *space = strrchr(name, ' ');

	snprintf(out, 64, "%.*s", space ? (int)(space - name) : 0, name);
}

int cli_dispatch(const struct cli_command *const *commands, int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL, *best = NULL;
	size_t distance = 3;
	char group[64];

	group_name(group, commands);
	for (size_t i = 0; word && commands[i]; i++) {
		const struct cli_command *c = commands[i];
		bool help =
			argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0);
		size_t d = str_distance(word, last_word(c), distance);

		if (d < distance) {
			distance = d;
			best = last_word(c);
		}
		if (d > 0)
			continue;
		if (!c->subcommands)
			return c->run(argc - 1, argv + 1);
		if (!help)
			return cli_dispatch(c->subcommands, argc - 1, argv + 1);
		cli_print_help(stdout, c);
		return fflush(stdout) == 0 ? 0 : CLI_EXIT_PALE;
	}
	if (!word)
		return cli_usage(group, "a command is needed");
	if (best)
		return cli_usage(group, "there is no command %s: did you mean %s?", QUOTED(word),
				 best);
	return cli_usage(group, "there is no command %s", QUOTED(word));
}

/* `pale help policy check` is `pale policy check --help`. */
static int help(const struct cli_command *const *commands, int argc, char **argv)
{
	for (size_t i = 0; argc > 0 && commands[i]; i++) {
		if (strcmp(argv[0], last_word(commands[i])) != 0)
			continue;
		if (argc > 1 && commands[i]->subcommands)
			return help(commands[i]->subcommands, argc - 1, argv + 1);
		cli_print_help(stdout, commands[i]);
		return fflush(stdout) == 0 ? 0 : CLI_EXIT_PALE;
	}
	if (argc > 0)
		return cli_usage("", "there is no command %s", QUOTED(argv[0]));
	printf("usage: pale COMMAND [ARG...]\n\n"
	       "Runs code that nobody has reviewed in a sandbox that holds on all four axes "
	       "(files,\n"
	       "network, kernel, resources), and in which everything is as on any Linux machine.\n"
	       "\n"
	       "    pale run -c 'print(6 * 7)'           code, a script or a command, in a box\n"
	       "    pale run --overlay . -- make test    on a copy of a directory; then: pale "
	       "diff\n"
	       "    pale run --allow example.com get.py  with one host of the network\n"
	       "    pale session new                     a box that stays; then: pale session "
	       "exec\n"
	       "    pale audit show --blocked            what it tried and was refused\n"
	       "    pale explain                         what is enforced here, and by what\n"
	       "\nCommands:\n");
	for (size_t i = 0; commands[i]; i++)
		printf("  %-14s  %s\n", commands[i]->name, commands[i]->summary);
	printf("\n`pale COMMAND --help` tells more. Exit statuses: 0; 1 no, or not all of it; 2 "
	       "wrong\n"
	       "usage; 125 Pale failed, or there is no such run. `pale run` passes the command's "
	       "on, and\n"
	       "has some of its own.\n");
	return fflush(stdout) == 0 ? 0 : CLI_EXIT_PALE;
}

/* Where the caller closed one of them, the next file that is opened would take its number: the box
 * would read or write the audit log instead. */
static int open_standard_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";

	if (open_standard_streams() < 0) {
		fprintf(stderr,
			"pale: cannot open /dev/null for a standard stream that is "
			"closed: %s\n",
			strerror(errno));
		return CLI_EXIT_PALE;
	}

	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
		return help(cli_commands, argc - 2, argv + 2);
	if (strcmp(word, "--version") == 0) {
		printf("pale %s\n", PALE_VERSION);
		return 0;
	}
	/* For the generators of man pages and shell completions. */
	if (strcmp(word, "--dump-commands") == 0)
		return cli_dump_commands(stdout, cli_commands);
	return cli_dispatch(cli_commands, argc, argv);
}
