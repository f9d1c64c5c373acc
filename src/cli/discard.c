/* pale discard: throws the kept changes of a run away. Runs with the caller's rights, outside any
 * box. */
#include <string.h>

#include "base/str.h"
#include "cli/audit.h"
#include "cli/workspace.h"

enum { OPT_YES = 1, OPT_JSON };
static const struct cli_option options[] = {
	{OPT_YES, 'y', "yes", NULL, "don't ask"},
	{OPT_JSON, 0, "json", NULL, "one JSON object with what was done"},
	{0},
};

/* Asks on `out`, which is not where JSON goes. */
static bool confirmed(const char *id, bool yes, FILE *out)
{
	char answer[16];

	if (yes)
		return true;
	fprintf(out, "Throw away the changes of run %s? [y/N] ", id);
	fflush(out);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int discard(bool yes, bool json, const struct cli_args *args)
{
	struct pale_workspace_options o = {0};
	struct pale_err err = {0};
	char id[PALE_ID_SIZE];
	const char *of;

	if (cli_workspace(args, id, &of, &o, &err) < 0)
		return cli_fail(&err);
	if (o.npaths)
		return cli_usage("discard", "there is no run %s (changes are discarded as a whole)",
				 QUOTED(o.paths[0]));
	if (pale_workspace_find(of, id, &err) < 0)
		return cli_fail(&err);
	if (!confirmed(id, yes, json ? stderr : stdout)) {
		fprintf(stderr, "pale discard: nothing was thrown away\n");
		if (json)
			printf("{\"run\":\"%s\",\"discarded\":false}\n", id);
		return cli_flushed(1);
	}
	if (pale_workspace_discard(id, &err) < 0)
		return cli_fail(&err);
	printf(json ? "{\"run\":\"%s\",\"discarded\":true}\n"
		    : "The changes of run %s are thrown away.\n",
	       id);
	return cli_flushed(0);
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_discard_command, argc, argv);
	bool yes = false, json = false;
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_YES: yes = true; break;
		case OPT_JSON: json = true; break;
		}
	if (id < 0)
		return args.status;
	if (!yes && !(isatty(STDIN_FILENO) && isatty(json ? STDERR_FILENO : STDOUT_FILENO)))
		return cli_usage("discard", "without a terminal to ask on, --yes is needed");
	return discard(yes, json, &args);
}

const struct cli_command cli_discard_command = {
	.name = "discard",
	.summary = "throw away what a run changed in a workspace",
	.usage = "[OPTION...] [RUN]",
	.help = "Removes the changes of a run that were kept for review. The directories on the "
		"host are not\n"
		"touched; what was applied stays. The run's log stays too.\n"
		"\n"
		"RUN is an id, the beginning of one, `last` (the default), or `@1` for the run "
		"before it.\n"
		"On a terminal it asks first.\n"
		"\n"
		"Examples:\n"
		"  pale discard\n"
		"  pale discard --yes 01j9\n",
	.options = options,
	.run = run,
};
