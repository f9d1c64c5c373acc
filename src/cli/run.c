/* pale run: one command in a box of its own, from policy to audit log. The command itself is the
 * supervisor. Trusted: the command line and the policy that it names. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "cli/options.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "supervise/supervise.h"

enum {
	OPT_CODE = 1,
	OPT_LANG,
	OPT_TTY,
	OPT_JSON,
	OPT_QUIET,
};

static const struct cli_option options[] = {
	{OPT_CODE, 'c', "code", "CODE", "run CODE instead of a file; see --lang"},
	{OPT_LANG, 0, "lang", "LANG", "language of CODE or of code on standard input",
	 .complete = "python|node|bash|sh"},
	{OPT_TTY, 't', "tty", NULL, "give the command a terminal"},
	{OPT_JSON, 0, "json", NULL,
	 "print one JSON object with output, outcome, usage and what was blocked"},
	{OPT_QUIET, 'q', "quiet", NULL, "no line about limits and blocked attempts at the end"},
	{0},
};

extern char **environ;

static int print_json(const struct result *result)
{
	json_t *o = result_to_json(result);
	int r = o ? json_dumpf(o, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : -1;

	json_decref(o);
	putchar('\n');
	return r;
}

static void print_summary(const struct result *r)
{
	const char *on = cli_colour(stderr) ? "\033[33m" : "", *off = *on ? "\033[0m" : "";
	bool limited = false;
	char text[256];

	for (int i = 0; i < LIMIT_COUNT; i++)
		limited |= r->limits[i].hit;
	if (limited)
		fprintf(stderr, "%spale: %s%s\n", on, result_describe(r, text, sizeof(text)), off);
	if (json_array_size(r->blocked))
		fprintf(stderr,
			"%spale: %zu kinds of attempts were blocked; see `pale audit show %s "
			"--blocked`%s\n",
			on, json_array_size(r->blocked), r->id, off);
	if (r->leftover)
		fprintf(stderr,
			"%spale: %llu processes were still running when the command ended; they "
			"were killed%s\n",
			on, (unsigned long long)r->leftover, off);
	for (size_t i = 0; i < json_array_size(r->changes); i++)
		fprintf(stderr, "pale: changes were kept; see `pale diff %s`\n", r->id);
}

static json_t *start_body(const struct policy *policy, struct pale_err *err)
{
	_cleanup_free_ char *text = NULL;
	char digest[65];

	if (policy_to_json(policy, &text, err) < 0 || policy_digest(policy, digest, err) < 0)
		return NULL;
	return json_pack("{so ss}", "policy", json_loads(text, 0, NULL), "policy_digest", digest);
}

/* One note a point in which the flags permit more than the policy file. */
static json_t **widened(const struct policy *file, const struct policy *policy)
{
	char lines[64][160];
	int n = file ? policy_widened(file, policy, lines, 64) : 0;
	json_t **notes = calloc((size_t)(n < 0 ? 0 : n > 64 ? 64 : n) + 1, sizeof(*notes));

	for (int i = 0; notes && i < n && i < 64; i++)
		notes[i] = json_pack("{ss ss so}", "stage", "policy", "event", "policy.widened",
				     "what", audit_text(lines[i], strlen(lines[i]), 160));
	return notes;
}

static int run(int argc, char **argv)
{
	extern const struct cli_command cli_run_command;
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_run_command, argc, argv);
	_cleanup_policy_ struct policy *file = NULL, *policy = NULL;
	_cleanup_plan_ struct plan *plan = NULL;
	_cleanup_free_ char *cwd = getcwd(NULL, 0);
	struct plan_request request = {.cwd = cwd, .env = environ};
	struct supervise_request supervise = {.control = -1, .handle_signals = true};
	struct result result = {0};
	struct pale_err err = {0};
	bool json = false, quiet = false;
	json_t **notes = NULL;
	const char *value;
	int id, status;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_CODE: request.code = value; break;
		case OPT_LANG: request.lang = value; break;
		case OPT_TTY: request.tty = true; break;
		case OPT_JSON: json = true; break;
		case OPT_QUIET: quiet = true; break;
		}
	if (id < 0)
		return args.status;
	if (json && request.tty)
		return cli_usage("run",
				 "--json and --tty exclude each other: a terminal has one stream");
	if (args.argc == 0 && !request.code && isatty(STDIN_FILENO))
		return cli_usage("run", "nothing to run: name a command, a script or -c CODE");
	if (cli_policy(&args, &file, &policy, &err) < 0)
		return cli_fail(&err);
	request.policy = policy;
	request.ordered = json;
	request.argv = args.argc || request.code ? (const char *const *)args.argv
						 : (const char *const[]){"-", NULL};
	if (supervise_recover(&err) < 0)
		return cli_fail(&err);
	if (plan_make(&request, &plan, &err) < 0) {
		cli_fail(&err);
		return err.code == PALE_E_NOTFOUND && err.sys == EACCES ? 126
		       : err.code == PALE_E_NOTFOUND			? 127
									: 125;
	}
	supervise.plan = plan;
	supervise.start = start_body(policy, &err);
	if (!supervise.start)
		return cli_fail(&err);
	notes = widened(file, policy);
	supervise.notes = notes;
	supervise.in = STDIN_FILENO;
	supervise.out = json ? -1 : STDOUT_FILENO;
	supervise.err = json ? -1 : STDERR_FILENO;
	supervise.keep_output = json;
	if (supervise_run(&supervise, &result, &err) < 0) {
		status = cli_fail(&err);
	} else {
		status = result_exit_status(&result);
		if (err.code != PALE_OK)
			cli_fail(&err);
		if (json)
			print_json(&result);
		else if (!quiet)
			print_summary(&result);
	}
	json_decref(supervise.start);
	for (json_t **n = notes; n && *n; n++)
		json_decref(*n);
	free(notes);
	result_done(&result);
	return status;
}

const struct cli_command cli_run_command = {
	.name = "run",
	.summary = "run a command, a script or code in a box",
	.usage = "[OPTION...] [--] COMMAND|SCRIPT|- [ARG...]",
	.help = "x",
	.run = run,
	.options = options,
	.policy_flags = true,
};
