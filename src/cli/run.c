/* pale run: one command in a box of its own, from policy to audit log. The command itself is the
 * supervisor. Trusted: the command line and the policy that it names. */
#include "cli.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/blocked.h"
#include "cli/options.h"

enum {
	OPT_CODE = 1,
	OPT_LANG,
	OPT_TTY,
	OPT_JSON,
	OPT_QUIET,
};

static const struct cli_option options[] = {
	{OPT_CODE, 'c', "code", "CODE", "run CODE instead of a file; see --lang"},
	{OPT_LANG, 0, "lang", "LANG",
	 "language of CODE or of code on standard input (default: python)",
	 .complete = "python|node|bash|sh"},
	{OPT_TTY, 't', "tty", NULL, "give the command a terminal"},
	{OPT_JSON, 0, "json", NULL,
	 "print one JSON object with output, outcome, usage and what was blocked; with `error` "
	 "where Pale failed"},
	{OPT_QUIET, 'q', "quiet", NULL, "no line about limits and blocked attempts at the end"},
	{0},
};

/* What the rules allow and the network did not: to the program it looks like a refusal. */
static void print_unreachable(const json_t *result, const char *id, const char *on, const char *off)
{
	const char *host, *detail;
	json_t *used;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(result, "network"), "used"), i, used)
	{
		/* A port that somebody came to before the box listened is none. */
		if (!json_object_get(used, "failed") || json_object_get(used, "inbound"))
			continue;
		host = cli_string_at(used, "host");
		detail = cli_string_at(used, "detail");
		if (!*host)
			host = cli_string_at(used, "address");
		fprintf(stderr,
			"%spale: allowed, but not reached: %s, port %d%s%s; see `pale audit show "
			"%s --events`%s\n",
			on, QUOTED(host), (int)json_integer_value(json_object_get(used, "port")),
			*detail && cli_is_clean(detail) ? ": " : "",
			cli_is_clean(detail) ? detail : "", id, off);
		break;
	}
}

void cli_print_summary(struct pale_result *r)
{
	const char *on = cli_colour(stderr) ? "\033[33m" : "", *off = *on ? "\033[0m" : "";
	const char *id = pale_result_audit_id(r), *text = pale_result_json(r);
	json_t *all = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
	uint64_t leftover = pale_result_count(r, PALE_COUNT_LEFTOVER);
	uint64_t refused = pale_result_count(r, PALE_COUNT_REFUSED);

	if (strcmp(pale_result_outcome(r), "destroyed") == 0)
		fprintf(stderr, "%spale: the box was destroyed: its first process was killed%s\n",
			on, off);
	if (pale_result_count(r, PALE_COUNT_LIMITS))
		fprintf(stderr, "%spale: %s%s\n", on, pale_result_summary(r), off);
	if (pale_result_count(r, PALE_COUNT_BLOCKED))
		cli_print_blocked(json_object_get(all, "blocked"),
				  pale_result_count(r, PALE_COUNT_BLOCKED), id);
	cli_print_hints(all);
	print_unreachable(all, id, on, off);
	json_decref(all);
	if (leftover)
		fprintf(stderr,
			"%spale: %llu process%s still running when the command ended and %s "
			"killed%s\n",
			on, (unsigned long long)leftover, leftover == 1 ? " was" : "es were",
			leftover == 1 ? "was" : "were", off);
	if (refused)
		fprintf(stderr,
			"%spale: %llu file%s collected, or not wholly; see `pale audit show %s "
			"--events`%s\n",
			on, (unsigned long long)refused, refused == 1 ? " was not" : "s were not",
			id, off);
	if (pale_result_count(r, PALE_COUNT_UNCHANGEABLE) && pale_result_exit_status(r) != 0)
		fprintf(stderr,
			"pale: in the overlay are files of another owner or group than yours, "
			"which cannot be changed inside (\"Value too large\"): chgrp them, or "
			"run as root\n");
	if (pale_result_count(r, PALE_COUNT_CHANGES))
		fprintf(stderr, "pale: changes were kept; see `pale diff %s`\n", id);
}

static bool shows_no_files(const struct pale_policy *policy)
{
	_cleanup_free_ char *text = NULL;
	bool none;
	json_t *o;

	if (pale_policy_json(policy, &text, NULL) < 0)
		return false;
	o = json_loads(text, JSON_ALLOW_NUL, NULL);
	none = o && json_array_size(json_object_get(o, "files")) == 0;
	json_decref(o);
	return none;
}

/* What newcomers miss first: a command failed whose operand is a file of theirs, but nothing of
 * their directory was in the box. */
static void print_hint(const struct pale_policy *policy, const struct pale_result *r,
		       const char *const *argv)
{
	if (pale_result_exit_status(r) == 0 || strcmp(pale_result_outcome(r), "exit") != 0 ||
	    !shows_no_files(policy))
		return;
	for (size_t i = 1; argv[0] && argv[i]; i++)
		if (argv[i][0] != '/' && argv[i][0] != '-' && access(argv[i], F_OK) == 0) {
			fprintf(stderr,
				"pale: %s was not in the box: show it with --ro, or all of this "
				"directory with --ro .\n",
				QUOTED(argv[i]));
			return;
		}
}

/* And of the network: a rule for localhost, of which a box has its own. */
static void print_loopback_hint(const struct pale_policy *policy, const struct pale_result *r)
{
	_cleanup_free_ char *text = NULL;
	struct pale_err ignored;
	json_t *all, *rule;
	size_t i;

	if (pale_result_exit_status(r) == 0 || pale_policy_json(policy, &text, &ignored) < 0)
		return;
	all = json_loads(text, JSON_ALLOW_NUL, NULL);
	json_array_foreach(json_object_get(json_object_get(all, "network"), "allow"), i, rule)
	{
		const char *host = cli_string_at(rule, "host"),
			   *address = cli_string_at(rule, "address");

		if (strcmp(host, "localhost") != 0 &&
		    (*host || (strncmp(address, "127.", 4) != 0 && strcmp(address, "::1") != 0)))
			continue;
		fprintf(stderr,
			"pale: localhost of a box is its own: for a server of this machine allow "
			"another address of it, or a name in /etc/hosts with `address: 127.0.0.1` "
			"in the policy's rule\n");
		break;
	}
	json_decref(all);
}

static int print_json(json_t *o)
{
	int failed = !o || json_dumpf(o, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) < 0 ||
		     putchar('\n') == EOF || fflush(stdout) != 0;

	json_decref(o);
	return failed ? -1 : 0;
}

static json_t *error_json(const struct pale_err *err)
{
	return json_pack("{ss ss}", "stage", err->stage, "message", err->message);
}

/* What a shell would say of a command that is not there, and 125 for the rest. */
static int status_of(const struct pale_err *err)
{
	if (err->code != PALE_E_NOTFOUND)
		return CLI_EXIT_PALE;
	return err->sys == EACCES ? 126 : 127;
}

/* The result; where Pale failed half-way, with why. */
static int print_result(struct pale_result *result, const struct pale_err *err)
{
	const char *text = pale_result_json(result);
	json_t *o;

	if (!text)
		return -1;
	if (err->code == PALE_OK)
		return puts(text) == EOF || fflush(stdout) != 0 ? -1 : 0;
	o = json_loads(text, JSON_ALLOW_NUL, NULL);
	if (o)
		json_object_set_new(o, "error", error_json(err));
	return print_json(o);
}

/* Does the policy publish ports? */
static bool publishes(const struct pale_policy *policy)
{
	_cleanup_free_ char *text = NULL;
	struct pale_err ignored;
	json_t *all = pale_policy_json(policy, &text, &ignored) == 0
			      ? json_loads(text, JSON_ALLOW_NUL, NULL)
			      : NULL;
	bool yes = json_array_size(json_object_get(json_object_get(all, "network"), "publish"));

	json_decref(all);
	return yes;
}

/* Where they are, before the command runs: whoever wants to connect cannot wait for the result. */
static void print_published(void *arg, const char *line)
{
	json_t *event = json_loads(line, JSON_ALLOW_NUL, NULL), *port;
	size_t i;

	(void)arg;
	if (strcmp(cli_string_at(event, "event"), "network.published") == 0)
		json_array_foreach(json_object_get(event, "ports"), i, port)
		{
			int in_box = (int)json_integer_value(json_object_get(port, "port"));
			json_t *at = json_object_get(port, "host_port");

			if (at)
				fprintf(stderr, "pale: port %d of the box is at localhost:%d\n",
					in_box, (int)json_integer_value(at));
			else
				fprintf(stderr, "pale: port %d of the box is at %s\n", in_box,
					QUOTED(cli_string_at(port, "path")));
		}
	json_decref(event);
}

static int run(int argc, char **argv)
{
	extern const struct cli_command cli_run_command;
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_run_command, argc, argv);
	_cleanup_policy_ struct pale_policy *file = NULL, *policy = NULL;
	struct pale_command command = {.size = sizeof(command)};
	struct pale_run_options how = {
		.size = sizeof(how), .use_fds = true, .in_process = true, .handle_signals = true};
	struct pale_result *result = NULL;
	struct pale_err err = {0};
	bool json = false, quiet = false;
	const char *value;
	int id, status;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_CODE: command.code = value; break;
		case OPT_LANG: command.lang = value; break;
		case OPT_TTY: command.tty = true; break;
		case OPT_JSON: json = true; break;
		case OPT_QUIET: quiet = true; break;
		}
	if (id < 0)
		return args.status;
	if (json && command.tty)
		return cli_usage("run", "--json and --tty exclude each other: a terminal has one "
					"stream");
	if (args.argc == 0 && !command.code)
		return cli_usage("run", "nothing to run: name a command or a script, give -c CODE, "
					"or say - for code on standard input");
	if (cli_policy(&args, &file, &policy, &err) < 0)
		return cli_fail(&err);
	command.argv = (const char *const *)args.argv;
	how.in = STDIN_FILENO;
	how.out = json ? -1 : STDOUT_FILENO;
	how.err = json ? -1 : STDERR_FILENO;
	how.keep_output = how.ordered = json;
	how.base_policy = file;
	if (publishes(policy))
		how.on_event = print_published;
	if (pale_run(policy, &command, &how, &result, &err) < 0)
		return cli_fail_as(&err, status_of(&err));
	status = pale_result_exit_status(result);
	if (err.code != PALE_OK)
		cli_say(&err);
	if (json) {
		if (print_result(result, &err) < 0) {
			fprintf(stderr, "pale: cannot print the result\n");
			status = CLI_EXIT_PALE;
		}
	} else if (!quiet) {
		cli_print_summary(result);
		if (!command.code)
			print_hint(policy, result, command.argv);
		print_loopback_hint(policy, result);
	}
	pale_result_free(result);
	pale_audit_prune_daily();
	return status;
}

const struct cli_command cli_run_command = {
	.name = "run",
	.summary = "run a command, a script or code in a box",
	.usage = "[OPTION...] [--] COMMAND|SCRIPT|- [ARG...]",
	.help = "Runs a command that nobody has reviewed, with no network but the hosts of "
		"--allow, "
		"nothing\n"
		"of the host's files but /usr, and a limit on everything. What the policy does not "
		"grant\n"
		"is refused and logged.\n"
		"\n"
		"  pale run python3 -c 'print(6 * 7)'\n"
		"  pale run -c 'print(6 * 7)'\n"
		"  pale run --ro . main.py                             with the modules and data "
		"beside it\n"
		"  pale run --ro data.csv --rw ./out:/out:64MiB summarise.py data.csv /out\n"
		"  pale run --overlay . --timeout 2m -- make test      then: pale diff; pale "
		"apply\n"
		"  pale run -p strict --memory 128MiB --json -c 'x = [0] * 10**9'\n"
		"  pale run --allow preset:pypi --allow 'GET api.example.com/v1/**' fetch.py\n"
		"  generate | pale run --lang node -                   code on standard input\n"
		"  pale run -t bash                                    look around inside\n"
		"\n"
		"It starts in the caller's directory if that is shown (--ro, --overlay), else in "
		"the "
		"overlay, else\n"
		"in the caller's directory if something in it is shown, else in HOME. What it "
		"writes there is\n"
		"gone at the end, but for an overlay's changes and what --rw collects.\n"
		"\n"
		"A file whose name ends in .py, .js, .sh and the like is run by its interpreter; "
		"with -c,\n"
		"further arguments are the code's. Programs are looked up as in the caller's "
		"shell: what\n"
		"they need of an active virtual environment, pyenv and the like comes with them, "
		"read-only.\n"
		"\n"
		"Exit status:\n"
		"  the command's own; 128+N if signal N ended it\n"
		"  124  a limit ended it; the last line and --json say which, with the figures\n"
		"  125  Pale failed, or was used wrongly: nothing ran, what ran was ended,\n"
		"       or the command's 0 when its results could not be collected or kept\n"
		"  126  the command is there but cannot be run\n"
		"  127  there is no such command\n"
		"  130  it was interrupted\n",
	.run = run,
	.options = options,
	.policy_flags = true,
	.stop_at_operand = true,
	.json_result = true,
	.usage_status = CLI_EXIT_PALE,
};
