/* `pale policy`: write, check, show and explain policies. Input: the caller's command line, and
 * policy files that may be broken or hostile; errors are printed escaped. */
#include "cli/cli.h"

#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

extern const struct cli_command cli_policy_command, cli_presets_command;

static int print_text(const char *text)
{
	if (fputs(text, stdout) == EOF || fflush(stdout) != 0) {
		fprintf(stderr, "pale: cannot write to standard output\n");
		return CLI_EXIT_PALE;
	}
	return 0;
}

/* ---- init ---- */

enum { OPT_OUTPUT = 1, OPT_FORCE, OPT_JSON, OPT_STRICT };

static const struct cli_option init_options[] = {
	{OPT_OUTPUT, 'o', "output", "FILE",
	 "where to write it; - is standard output (default: policy.yaml)", "file"},
	{OPT_FORCE, 'f', "force", NULL, "write over a file that is there", NULL},
	{OPT_JSON, 0, "json", NULL, "one JSON object with the file's name", NULL},
	{0},
};

static const struct cli_command init_command;

static int write_new(const char *name, const char *text, bool force, bool json)
{
	char safe[4096];
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (force ? O_TRUNC : O_EXCL);
	_cleanup_close_ int fd = open(name, flags, 0644);
	int r;

	if (fd < 0 && errno == EEXIST) {
		fprintf(stderr, "pale: %s is there already; --force writes over it\n",
			QUOTED(name));
		return 1;
	}
	r = fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
	if (r < 0) {
		fprintf(stderr, "pale: cannot write %s: %s\n", QUOTED(name), strerror(-r));
		return 1;
	}
	if (json) {
		/* What is no UTF-8 is no JSON string either. */
		json_t *o = json_pack(
			"{s:s}", "file",
			str_utf8_prefix(name, strlen(name)) == strlen(name)
				? name
				: str_escape_into(safe, sizeof(safe), name, strlen(name)));

		json_dumpf(o, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
		json_decref(o);
		return print_text("\n");
	}
	printf("%s\n", name);
	return 0;
}

static int run_init(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&init_command, argc, argv);
	_cleanup_free_ char *text = NULL;
	const char *value, *output = "policy.yaml";
	struct pale_err err;
	bool force = false, json = false;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_OUTPUT: output = value; break;
		case OPT_FORCE: force = true; break;
		case OPT_JSON: json = true; break;
		}
	if (id < 0)
		return args.status;
	if (args.argc > 1)
		return cli_usage(init_command.name, "one name of a shipped policy at most");
	if (json && strcmp(output, "-") == 0)
		return cli_usage(init_command.name, "--json and -o - exclude each other");
	if (pale_policy_starter(args.argc ? args.argv[0] : NULL, &text, &err) < 0) {
		cli_fail(&err);
		return 1;
	}
	return strcmp(output, "-") == 0 ? print_text(text) : write_new(output, text, force, json);
}

static const struct cli_command init_command = {
	.name = "policy init",
	.summary = "write a commented policy to start from",
	.usage = "[OPTION...] [NAME]",
	.help = "NAME is a shipped policy (compute, analysis, workspace, strict, pip-install,\n"
		"npm-install, github-read, notebook); without it, the policy has every key with "
		"its default. "
		"A\n"
		"file that is there is never written over without --force.\n",
	.options = init_options,
	.run = run_init,
};

/* ---- check ---- */

static const struct cli_option check_options[] = {
	{OPT_JSON, 0, "json", NULL, "print the results as JSON", NULL},
	{OPT_STRICT, 0, "strict", NULL, "what is a warning is an error", NULL},
	{0},
};

static const struct cli_command check_command;

struct check {
	bool json, strict;
	const char *name; /* of the current file, as messages begin with it */
	json_t *errors, *warnings;
};

/* The length of "NAME:LINE:COLUMN: " at its beginning; 0: it is not about a line. */
static size_t place_of(const struct check *c, const char *message, unsigned *ret_line,
		       unsigned *ret_column)
{
	size_t n = strlen(c->name);
	int skip = 0;

	if (strncmp(message, c->name, n) != 0 ||
	    sscanf(message + n, ":%u:%u: %n", ret_line, ret_column, &skip) != 2 || skip <= 0)
		return 0;
	return n + (size_t)skip;
}

static json_t *message_json(const struct check *c, const char *message)
{
	unsigned line, column;
	size_t place = place_of(c, message, &line, &column);

	if (place)
		return json_pack("{s:i,s:i,s:s}", "line", (int)line, "column", (int)column,
				 "message", message + place);
	return json_pack("{s:s}", "message", message);
}

static void report(void *arg, bool warning, const char *message)
{
	struct check *c = arg;
	unsigned line, column;
	size_t place = place_of(c, message, &line, &column);

	warning = warning && !c->strict;
	json_array_append_new(warning ? c->warnings : c->errors, message_json(c, message));
	if (!c->json)
		fprintf(stderr, "%.*s%s%s\n", (int)place, message, warning ? "warning: " : "",
			message + place);
}

static int run_check(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&check_command, argc, argv);
	struct check c = {0};
	const char *value;
	json_t *all;
	bool good = true;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_JSON: c.json = true; break;
		case OPT_STRICT: c.strict = true; break;
		}
	if (id < 0)
		return args.status;
	if (args.argc < 1)
		return cli_usage(check_command.name, "a file is needed");
	all = json_array();
	for (int i = 0; i < args.argc; i++) {
		char name[512];
		bool ok;

		str_escape_into(name, sizeof(name), args.argv[i], strlen(args.argv[i]));
		c.errors = json_array();
		c.warnings = json_array();
		c.name = strcmp(args.argv[i], "-") == 0 ? "standard input" : name;
		ok = pale_policy_check(args.argv[i], report, &c, NULL) >= 0 &&
		     json_array_size(c.errors) == 0;
		good = good && ok;
		if (!c.json)
			ok ? printf("%s: a valid policy\n", name) : 0;
		json_array_append_new(all, json_pack("{s:s,s:b,s:o,s:o}", "file", name, "valid", ok,
						     "errors", c.errors, "warnings", c.warnings));
	}
	if (c.json) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(all);
	return fflush(stdout) != 0 ? CLI_EXIT_PALE : good ? 0 : 1;
}

static const struct cli_command check_command = {
	.name = "policy check",
	.summary = "check policies: each error with its line and column",
	.usage = "[OPTION...] FILE...",
	.help = "FILE is a file, - for standard input, or the name of a shipped policy. The exit "
		"status\n"
		"is 0 if all are valid, 1 if not.\n"
		"\n"
		"A policy may be checked on another machine than where it is used: a source of "
		"`files` that\n"
		"is not here, or cannot be mounted, is a warning, although `pale run` would "
		"refuse it. With\n"
		"--strict it is an error.\n",
	.options = check_options,
	.run = run_check,
};

/* ---- schema, docs ---- */

static const struct cli_command schema_command, docs_command;

static int print_generated(const struct cli_command *command, int argc, char **argv,
			   int (*make)(char **ret, struct pale_err *err))
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(command, argc, argv);
	_cleanup_free_ char *text = NULL;
	struct pale_err err;
	const char *value;

	if (cli_next(&args, &value) < 0)
		return args.status;
	if (args.argc > 0)
		return cli_usage(command->name, "takes no arguments");
	if (make(&text, &err) < 0)
		return cli_fail(&err);
	return print_text(text);
}

static int run_schema(int argc, char **argv)
{
	return print_generated(&schema_command, argc, argv, pale_policy_schema);
}

static int run_docs(int argc, char **argv)
{
	return print_generated(&docs_command, argc, argv, pale_policy_docs);
}

static const struct cli_command schema_command = {
	.name = "policy schema",
	.summary = "print the JSON Schema of policies, for editors and other programs",
	.usage = "",
	.run = run_schema,
};

static const struct cli_command docs_command = {
	.name = "policy docs",
	.summary = "print the documentation of every key, as Markdown",
	.usage = "",
	.run = run_docs,
};

/* ---- show ---- */

static const struct cli_option show_options[] = {
	{OPT_JSON, 0, "json", NULL, "print JSON", NULL},
	{0},
};

static const struct cli_command show_command;

static int run_show(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&show_command, argc, argv);
	_cleanup_policy_ struct pale_policy *p = NULL;
	_cleanup_free_ char *text = NULL;
	struct pale_err err;
	const char *value;
	bool json = false;
	json_t *j;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		json = true;
	if (id < 0)
		return args.status;
	if (args.argc > 0)
		return cli_usage(show_command.name,
				 "takes no arguments; a file or a shipped policy is named with -p");
	/* As YAML in any case: that checks it. */
	if (cli_policy(&args, NULL, &p, &err) < 0 || pale_policy_yaml(p, &text, &err) < 0) {
		cli_fail(&err);
		return 1;
	}
	if (!json)
		return print_text(text);
	free(take_ptr(text));
	if (pale_policy_json(p, &text, &err) < 0)
		return cli_fail(&err);
	/* ASCII only: a path may hold what a terminal obeys. */
	j = json_loads(text, 0, NULL);
	json_dumpf(j, stdout, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
	json_decref(j);
	return print_text("\n");
}

static const struct cli_command show_command = {
	.name = "policy show",
	.summary = "print the policy that files and flags make together",
	.usage = "[OPTION...]",
	.help = "  pale policy show -p analysis --memory 2GiB\n",
	.options = show_options,
	.policy_flags = true,
	.run = run_show,
};

static const struct cli_command *const subcommands[] = {
	&init_command,	 &check_command, &show_command, &cli_presets_command,
	&schema_command, &docs_command,	 NULL,
};

const struct cli_command cli_policy_command = {
	.name = "policy",
	.summary = "write, check and show policies",
	.usage = "COMMAND [ARG...]",
	.help = "A policy says what untrusted code may touch; see pale-policy(5).\n",
	.subcommands = subcommands,
};
