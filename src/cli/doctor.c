/* pale doctor: what this host can enforce for this user. Runs with the caller's privileges and no
 * hostile input; what is tried is tried in children (src/isolation/doctor.c). */
#include "cli.h"

#include <unistd.h>

#include "cli/options.h"

enum { OPT_JSON = 1 };

static const struct cli_option options[] = {
	{OPT_JSON, 0, "json", NULL, "one JSON object with all checks"},
	{0},
};

static int run(int argc, char **argv)
{
	extern const struct cli_command cli_doctor_command;
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_doctor_command, argc, argv);
	_cleanup_free_ char *text = NULL;
	struct pale_err err = {0};
	const char *value;
	bool json = false;
	int id, r;

	while ((id = cli_next(&args, &value)) > 0)
		json = true;
	if (id < 0)
		return args.status;
	if (args.argc)
		return cli_usage("doctor", "it takes no operand");
	r = pale_doctor(json ? &text : NULL, json ? NULL : stdout,
			cli_colour(stdout) ? PALE_PRINT_COLOUR : 0, &err);
	if (r < 0)
		return cli_fail(&err);
	if (json)
		puts(text);
	if (fflush(stdout) != 0 || ferror(stdout))
		return CLI_EXIT_PALE;
	return r ? 0 : 1;
}

const struct cli_command cli_doctor_command = {
	.name = "doctor",
	.summary = "try what this host can enforce for this user, and say how to get the rest",
	.usage = "[--json]",
	.help = "Tries each mechanism for real, as the user who calls it, and at the end builds a "
		"whole box\n"
		"with the default policy. Where something is weaker than it could be, the line "
		"says "
		"what is\n"
		"in force instead; where something is missing, what to do about it.\n"
		"\n"
		"  pale doctor\n"
		"  sudo pale doctor              what root's boxes have\n"
		"  pale doctor --json | jq -r '.checks[] | select(.state != \"ok\") | .remedy'\n"
		"\n"
		"Exit status: 0 if the default policy can be enforced here, 1 if not.\n",
	.run = run,
	.options = options,
};
