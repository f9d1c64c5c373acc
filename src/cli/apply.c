/* pale apply: writes what a run changed in its overlays to the host, file by file. Runs with the
 * caller's rights, outside any box; names and contents come from the box, and are printed escaped.
 */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "cli/audit.h"
#include "cli/workspace.h"

enum { OPT_ALL_HELD = 1, OPT_INCLUDE, OPT_DRY_RUN, OPT_FORCE, OPT_JSON };
static const struct cli_option options[] = {
	{OPT_DRY_RUN, 'n', "dry-run", NULL, "say what would be done, and do nothing"},
	{OPT_INCLUDE, 0, "include", "PATTERN",
	 "also what is held back and fits PATTERN, of the whole path in the workspace (*, ?, "
	 "[a-z]; * also "
	 "stands for slashes)"},
	{OPT_ALL_HELD, 0, "all-held", NULL, "also everything that is held back"},
	{OPT_FORCE, 0, "force-conflicts", NULL,
	 "also over files that changed on the host meanwhile"},
	{OPT_JSON, 0, "json", NULL, "one JSON object with what was done"},
	{0},
};

static void print_totals(const struct pale_workspace_totals *t, bool dry_run)
{
	const struct {
		uint64_t n;
		const char *word;
	} counts[] = {
		{t->already, "there already"}, {t->held, "held"},     {t->conflicts, "conflict"},
		{t->refused, "refused"},       {t->failed, "failed"},
	};

	printf(" %" PRIu64 " %s", t->applied, dry_run ? "would be applied" : "applied");
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		if (counts[i].n)
			printf(", %" PRIu64 " %s", counts[i].n, counts[i].word);
	puts("");
	if (t->held)
		printf(" Held back: look with `pale diff --patch %s PATH`, then name it: `pale "
		       "apply %s PATH`.\n",
		       t->run, t->run);
	if (t->conflicts)
		printf(" Conflicts: merge with `pale diff --patch %s PATH`, or `pale apply "
		       "--force-conflicts %s PATH`.\n",
		       t->run, t->run);
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_apply_command, argc, argv);
	_cleanup_free_ const char **include = calloc((size_t)argc, sizeof(*include));
	struct pale_workspace_options o = {.size = sizeof(o), .include = include};
	struct pale_workspace_totals t;
	struct pale_err err = {0};
	char id[PALE_ID_SIZE];
	const char *value, *of;
	int option, r;

	if (!include)
		return CLI_EXIT_PALE;
	while ((option = cli_next(&args, &value)) > 0)
		switch (option) {
		case OPT_DRY_RUN: o.flags |= PALE_APPLY_DRY_RUN; break;
		case OPT_INCLUDE: include[o.ninclude++] = value; break;
		case OPT_ALL_HELD: o.flags |= PALE_APPLY_ALL_HELD; break;
		case OPT_FORCE: o.flags |= PALE_APPLY_FORCE; break;
		case OPT_JSON: o.flags |= PALE_DIFF_JSON; break;
		}
	if (option < 0)
		return args.status;
	o.flags |= cli_colour(stdout) ? PALE_PRINT_COLOUR : 0;
	if (cli_workspace(&args, id, &of, &o, &err) < 0)
		return cli_fail(&err);
	r = pale_workspace_apply(of, &o, stdout, &t, &err);
	if (r == -PALE_E_USAGE)
		return cli_usage("apply", "%s", err.message);
	if (r < 0) {
		fflush(stdout);
		return cli_fail(&err);
	}
	if (!(o.flags & PALE_DIFF_JSON))
		print_totals(&t, o.flags & PALE_APPLY_DRY_RUN);
	return cli_flushed(t.held || t.conflicts || t.refused || t.failed ? 1 : 0);
}

const struct cli_command cli_apply_command = {
	.name = "apply",
	.summary = "write what a run changed in a workspace to the host",
	.usage = "[OPTION...] [RUN] [PATH...]",
	.help = "Writes the changes that a run made in its overlays to the directories themselves, "
		"each file\n"
		"by one rename. Modes and times are kept; what is made belongs to the caller. "
		"Links are not\n"
		"followed. Devices, sockets, and setuid and setgid bits are refused.\n"
		"\n"
		"Held back is what the host would execute or obey later without being asked: git "
		"hooks and\n"
		"configuration, editor tasks, shell and direnv files, CI files, package scripts, "
		"the\n"
		"instructions of coding agents, links that lead out. Name such a file (or a "
		"directory of\n"
		"such files, like .vscode) as PATH to apply it.\n"
		"\n"
		"Letters: as of `pale diff`, and t where only the times are new.\n"
		"\n"
		"A file that changed on the host since the run began is a conflict and is left "
		"alone.\n"
		"Applying again is harmless: what is there already is recognised.\n"
		"\n"
		"RUN is an id, the beginning of one, `last` (the default), or `@1` for the run "
		"before it.\n"
		"PATH is relative to the working directory if that is in the workspace, or else to "
		"the\n"
		"workspace.\n"
		"\n"
		"Exit status: 0 all applied; 1 something was held back, in conflict, refused or "
		"failed;\n"
		"2 wrong usage; 125 Pale failed.\n"
		"\n"
		"Examples:\n"
		"  pale apply\n"
		"  pale apply --dry-run last src/\n"
		"  pale apply last .github/workflows/test.yml\n",
	.options = options,
	.run = run,
};
