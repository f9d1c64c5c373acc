/* pale verify: every promise of a policy's plan, tried by attacks in boxes made from it. Trusted:
 * the command line, the policy that it names, and the attacks, which are ours. */
#include "cli.h"

#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/wrap.h"
#include "cli/options.h"

enum { OPT_JSON = 1, OPT_AXIS, OPT_ATTACK, OPT_LIST, OPT_VERBOSE };

static const struct cli_option options[] = {
	{OPT_AXIS, 0, "axis", "AXIS", "only attacks on one axis",
	 .complete = "files|network|kernel|resources"},
	{OPT_ATTACK, 0, "attack", "NAME[,NAME...]", "only these attacks"},
	{OPT_VERBOSE, 'v', "verbose", NULL,
	 "a line for each attack: what it would gain, and what became of it"},
	{OPT_LIST, 0, "list", NULL, "run nothing: print the attacks that there are"},
	{OPT_JSON, 0, "json", NULL, "the report as one JSON object"},
	{0},
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	interrupted = number;
}

/* On a terminal, how far it is. */
static int progress(void *arg, size_t done, size_t all)
{
	const bool *show = arg;

	if (*show)
		fprintf(stderr, "\r\033[Kpale: %zu of %zu boxes", done, all);
	if (*show && done == all)
		fprintf(stderr, "\r\033[K");
	fflush(stderr);
	return interrupted != 0;
}

static int list(bool json)
{
	_cleanup_free_ char *text = NULL;
	struct pale_err err = {0};
	json_t *all, *a;
	size_t i;

	if (pale_verify_attacks(&text, &err) < 0)
		return cli_fail(&err);
	if (json) {
		puts(text);
		return 0;
	}
	all = json_loads(text, 0, NULL);
	json_array_foreach(all, i, a)
	{
		const char *axis = "", *promise = "", *name = "", *gain = "";

		json_unpack(a, "{s:s, s:s, s:s, s:s}", "axis", &axis, "promise", &promise, "attack",
			    &name, "gain", &gain);
		printf("%-9s %-11s %-22s ", axis, promise, name);
		wrap_print(stdout, gain, 45, 120);
	}
	json_decref(all);
	return 0;
}

static int print(const char *report, bool json, bool verbose, int state)
{
	if (json)
		puts(report);
	else
		pale_verify_print(report, stdout,
				  (cli_colour(stdout) ? PALE_PRINT_COLOUR : 0) |
					  (verbose ? PALE_PRINT_ATTACKS : 0));
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "pale: cannot write to standard output\n");
		return CLI_EXIT_PALE;
	}
	return state == 1 ? 0 : state == 0 ? 1 : CLI_EXIT_PALE;
}

static int run(int argc, char **argv)
{
	extern const struct cli_command cli_verify_command;
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_verify_command, argc, argv);
	_cleanup_policy_ struct pale_policy *policy = NULL;
	_cleanup_free_ char *report = NULL;
	bool json = false, verbose = false, listing = false;
	bool show = isatty(STDERR_FILENO);
	struct pale_verify_options how = {.size = sizeof(how), .progress = progress, .arg = &show};
	struct sigaction stop = {.sa_handler = interrupt};
	struct pale_err err = {0};
	const char *value;
	int id, state;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_JSON: json = true; break;
		case OPT_AXIS: how.axis = value; break;
		case OPT_ATTACK: how.attacks = value; break;
		case OPT_LIST: listing = true; break;
		case OPT_VERBOSE: verbose = true; break;
		}
	if (id < 0)
		return args.status;
	if (args.argc)
		return cli_usage("verify", "it takes no operand");
	if (listing)
		return list(json);
	if (cli_policy(&args, NULL, &policy, &err) < 0)
		return cli_fail(&err);
	/* What was put up for the attacks is taken down. */
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	state = pale_verify(policy, &how, &report, &err);
	if (state >= 0)
		return print(report, json, verbose, state);
	if (interrupted)
		return 128 + interrupted;
	return err.code == PALE_E_USAGE ? cli_fail_as(&err, CLI_EXIT_USAGE) : cli_fail(&err);
}

const struct cli_command cli_verify_command = {
	.name = "verify",
	.summary = "prove that each promise of a policy holds here, by attacks",
	.usage = "[OPTION...]",
	.help = "Runs a corpus of attacks in boxes made from a policy, on this host and as this "
		"user, and says\n"
		"for each promise of the plan (pale explain) whether it held, how many attacks "
		"were aimed at it,\n"
		"and whether they are in the audit log where that is promised. Every limit is "
		"exceeded for real;\n"
		"one that would take long or much is lowered for it, and said to be.\n"
		"\n"
		"  pale verify\n"
		"  pale verify -p policy.yaml --verbose\n"
		"  pale verify -p npm-install --json | jq -r '.promises[] | select(.state == "
		"\"broken\")'\n"
		"  pale verify --axis kernel\n"
		"  pale verify --list\n"
		"\n"
		"Nothing of yours is touched: what the policy collects, publishes or keeps secret "
		"is replaced by\n"
		"things of verify's own, and the logs of its boxes go when it ends. What the "
		"policy permits is\n"
		"not counted.\n"
		"\n"
		"Exit status: 0 if all that was tried held; 1 if a promise is broken; 2 for wrong "
		"usage; 125 if\n"
		"no box could be made, if it was not seen what became of an attack, or if none "
		"could be tried.\n",
	.run = run,
	.options = options,
	.policy_flags = true,
};
