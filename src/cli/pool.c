/* pale pool: boxes of a policy, held ready for `pale session new`. Runs with the caller's rights,
 * outside any box; the pool is a process of the same user. */
#include <string.h>

#include "base/str.h"
#include "cli/audit.h"

extern const struct cli_command cli_pool_command;
extern const struct cli_command cli_pool_start_command;
extern const struct cli_command cli_pool_ls_command;
extern const struct cli_command cli_pool_stop_command;

static int failed(const struct pale_err *err)
{
	switch (err->code) {
	case PALE_E_USAGE:
	case PALE_E_POLICY: return cli_fail_as(err, CLI_EXIT_USAGE);
	case PALE_E_NOTFOUND:
	case PALE_E_CONFLICT: return cli_fail_as(err, 1);
	default: return cli_fail(err);
	}
}

/* ---- start ---- */

enum { OPT_SIZE = 1, OPT_KERNEL, OPT_IMPORT, OPT_JSON };
static const struct cli_option start_options[] = {
	{OPT_SIZE, 'n', "size", "N", "boxes that are held ready, 1 to 256 (default 4)", "any"},
	{OPT_KERNEL, 0, "kernel", "KERNEL", "what runs the code (session.kernel)", "any"},
	{OPT_IMPORT, 0, "import", "MODULE",
	 "a Python module, or several with commas, imported ahead (session.imports)", "any"},
	{0},
};

static int start(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_pool_start_command, argc, argv);
	_cleanup_policy_ struct pale_policy *policy = NULL, *file = NULL;
	struct pale_pool_options options = {.size = sizeof(options), .boxes = 4};
	const char *value, *kernel = NULL, *imports[64];
	size_t nimports = 0;
	struct pale_err err = {0};
	char *end;
	int id, r;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_SIZE:
			options.boxes = (unsigned)strtoul(value, &end, 10);
			if (*end || options.boxes < 1 || options.boxes > 256)
				return cli_usage("pool start", "--size %s: 1 to 256 is meant",
						 QUOTED(value));
			break;
		case OPT_KERNEL: kernel = value; break;
		case OPT_IMPORT:
			if (nimports == ARRAY_SIZE(imports))
				return cli_usage("pool start", "--import: too many");
			imports[nimports++] = value;
			break;
		}
	if (id < 0)
		return args.status;
	if (args.argc)
		return cli_usage("pool start", "what is %s?", QUOTED(args.argv[0]));
	r = cli_policy(&args, &file, &policy, &err);
	if (r == 0 && kernel)
		r = pale_policy_set(policy, "session.kernel", kernel, &err);
	for (size_t i = 0; r == 0 && i < nimports; i++) {
		_cleanup_free_ char *list = strdup(imports[i]);
		char *rest = list, *name;

		while (r == 0 && rest && (name = strsep(&rest, ",")))
			if (*name)
				r = pale_policy_set(policy, "session.imports", name, &err);
	}
	options.base_policy = file;
	if (r == 0)
		r = pale_pool_start(policy, &options, &err);
	return r < 0 ? failed(&err) : 0;
}

const struct cli_command cli_pool_start_command = {
	.name = "pool start",
	.summary = "hold sessions of a policy ready",
	.usage = "[OPTION...]",
	.help = "Starts a process that holds boxes with this policy ready, each with its kernel "
		"started "
		"and\n"
		"never used, and comes back when they are. `pale session new` with the very same "
		"policy "
		"then\n"
		"takes one of them, which is used once. The pool makes new ones, and runs until "
		"`pale pool "
		"stop`.\n"
		"\n"
		"  pale pool start\n"
		"  pale pool start -n 8 --import numpy,pandas --memory 1GiB\n"
		"\n"
		"The policy names no files of the host, no secrets and no published ports: they "
		"would be "
		"those\n"
		"of when the boxes were made.\n"
		"\n"
		"Exit status: 0; 1 a pool of this policy runs already; 2 the policy or the usage "
		"is wrong; "
		"125\n"
		"Pale failed.\n",
	.options = start_options,
	.policy_flags = true,
	.run = start,
};

/* ---- ls ---- */

static const struct cli_option ls_options[] = {
	{OPT_JSON, 0, "json", NULL, "one JSON array"},
	{0},
};

static void take(void *arg, const char *json)
{
	json_array_append_new(arg, json_loads(json, 0, NULL));
}

static int ls(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_pool_ls_command, argc, argv);
	struct pale_err err = {0};
	json_t *list = json_array(), *pool;
	const char *value;
	bool json = false;
	size_t i;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		json = json || id == OPT_JSON;
	if (id < 0 || pale_pool_list(take, list, &err) < 0) {
		json_decref(list);
		return id < 0 ? args.status : failed(&err);
	}
	if (json) {
		_cleanup_free_ char *text = json_dumps(list, JSON_INDENT(2) | JSON_ENSURE_ASCII);

		puts(text ? text : "[]");
	} else if (json_array_size(list)) {
		printf("%-12s  %5s  %5s  %8s  %8s  %s\n", "KEY", "READY", "SIZE", "TAKEN", "PID",
		       "POLICY");
	}
	json_array_foreach(list, i, pool)
	{
		char name[128];
		const char *policy = json_string_value(json_object_get(pool, "policy")),
			   *key = json_string_value(json_object_get(pool, "key"));

		if (json || !policy || !key)
			continue;
		printf("%-12.12s  %5lld  %5lld  %8lld  %8lld  %s\n", key,
		       json_integer_value(json_object_get(pool, "ready")),
		       json_integer_value(json_object_get(pool, "size")),
		       json_integer_value(json_object_get(pool, "claimed")),
		       json_integer_value(json_object_get(pool, "pid")),
		       str_escape_into(name, sizeof(name), policy, strlen(policy)));
	}
	json_decref(list);
	return cli_flushed(0);
}

const struct cli_command cli_pool_ls_command = {
	.name = "pool ls",
	.summary = "list the pools that run",
	.usage = "[--json]",
	.help = "  pale pool ls\n"
		"\n"
		"Exit status: 0; 2 the usage is wrong; 125 Pale failed.\n",
	.options = ls_options,
	.run = ls,
};

/* ---- stop ---- */

enum { OPT_ALL = 1 };
static const struct cli_option stop_options[] = {
	{OPT_ALL, 'a', "all", NULL, "all of them"},
	{0},
};

static int stop(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_pool_stop_command, argc, argv);
	struct pale_err err = {0};
	const char *value;
	bool all = false;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		all = all || id == OPT_ALL;
	if (id < 0)
		return args.status;
	if (args.argc > 1 || all == (args.argc == 1) || (args.argc && !*args.argv[0]))
		return cli_usage("pool stop",
				 "name one pool by the beginning of its key, or say --all");
	return pale_pool_stop(all ? NULL : args.argv[0], &err) < 0 ? failed(&err) : 0;
}

const struct cli_command cli_pool_stop_command = {
	.name = "pool stop",
	.summary = "stop a pool",
	.usage = "KEY|--all",
	.help = "Stops the pool whose key begins with KEY, and ends the boxes that nobody has "
		"taken. "
		"Sessions\n"
		"that were taken go on.\n"
		"\n"
		"  pale pool stop 76b1c8\n"
		"  pale pool stop --all\n"
		"\n"
		"Exit status: 0; 1 there is no such pool; 2 the usage is wrong; 125 Pale failed.\n",
	.options = stop_options,
	.run = stop,
};

static const struct cli_command *const subcommands[] = {
	&cli_pool_start_command, &cli_pool_ls_command, &cli_pool_stop_command, NULL};

const struct cli_command cli_pool_command = {
	.name = "pool",
	.summary = "hold boxes ready, so that sessions start in a millisecond",
	.usage = "start|ls|stop [OPTION...]",
	.help = "Holds boxes of a policy ready for `pale session new`.\n"
		"\n"
		"  pale pool start --import numpy,pandas\n"
		"  pale pool ls\n"
		"  pale pool stop --all\n",
	.subcommands = subcommands,
};
