/* pale explain: what would be enforced, by what, and what that does not cover. Runs nothing, makes
 * nothing and needs no state directory. Trusted: the command line and the policy that it names. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

#include "cli/options.h"

enum { OPT_JSON = 1, OPT_STEPS, OPT_CODE, OPT_LANG };

static const struct cli_option options[] = {
	{OPT_JSON, 0, "json", NULL, "the promises, the steps and the digest as one JSON object"},
	{OPT_STEPS, 0, "steps", NULL, "also the steps by which a box is built"},
	{OPT_CODE, 'c', "code", "CODE", "explain a run of CODE"},
	{OPT_LANG, 0, "lang", "LANG", "language of CODE", .complete = "python|node|bash|sh"},
	{0},
};

static int print_plan(const struct pale_plan *plan, bool json, bool steps, struct pale_err *err)
{
	_cleanup_free_ char *text = NULL;
	char digest[65];

	if (json) {
		if (pale_plan_json(plan, &text, err) < 0)
			return cli_fail(err);
		puts(text);
	} else {
		if (pale_plan_digest(plan, digest, err) < 0)
			return cli_fail(err);
		pale_plan_print(plan, stdout,
				(cli_colour(stdout) ? PALE_PRINT_COLOUR : 0) |
					(steps ? PALE_PRINT_STEPS : 0));
		printf("digest\n  %s\n", digest);
	}
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	fprintf(stderr, "pale: cannot write to standard output\n");
	return CLI_EXIT_PALE;
}

static int run(int argc, char **argv)
{
	extern const struct cli_command cli_explain_command;
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_explain_command, argc, argv);
	_cleanup_policy_ struct pale_policy *policy = NULL;
	static const char *const probe[] = {"true", NULL};
	struct pale_command command = {.size = sizeof(command)};
	struct pale_plan *plan = NULL;
	struct pale_err err = {0};
	bool json = false, steps = false;
	const char *value;
	int id, status;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_JSON: json = true; break;
		case OPT_STEPS: steps = true; break;
		case OPT_CODE: command.code = value; break;
		case OPT_LANG: command.lang = value; break;
		}
	if (id < 0)
		return args.status;
	command.argv = args.argc || command.code ? (const char *const *)args.argv : probe;
	if (cli_policy(&args, NULL, &policy, &err) < 0 ||
	    pale_plan_new(policy, &command, &plan, &err) < 0) {
		cli_fail(&err);
		return 1;
	}
	status = print_plan(plan, json, steps, &err);
	pale_plan_free(plan);
	return status;
}

const struct cli_command cli_explain_command = {
	.name = "explain",
	.summary = "show what would be enforced here, by what, and what that does not cover",
	.usage = "[OPTION...] [--] [COMMAND [ARG...]]",
	.help = "Resolves a policy against this host for this user and shows the plan: one entry a "
		"promise,\n"
		"with the mechanism that keeps it, the fallback where the best mechanism cannot be "
		"had, and\n"
		"what is not covered; then the plan's digest, which also stands in the audit log. "
		"The same\n"
		"policy, command and host give the same digest. Nothing is run.\n"
		"\n"
		"  pale explain\n"
		"  pale explain -p workspace --memory 2GiB -- make test\n"
		"  pale explain -p policy.yaml --json | jq -r '.promises[] | "
		"select(.not_covered)'\n"
		"\n"
		"Exit status: 0; 1 if the policy is wrong or cannot be enforced here, with what is "
		"missing;\n"
		"2 for wrong usage.\n",
	.run = run,
	.options = options,
	.policy_flags = true,
	.stop_at_operand = true,
};
