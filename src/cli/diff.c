/* pale diff: what a run changed in its overlays. Runs with the caller's rights, outside any box,
 * and changes nothing. Names and contents come from the box: on a terminal they are escaped; the
 * bytes of --patch and -z go out as they are only where no terminal is. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "cli/audit.h"
#include "cli/workspace.h"

enum { OPT_PATCH = 1, OPT_JSON, OPT_NAMES, OPT_ZERO };
static const struct cli_option options[] = {
	{OPT_PATCH, 'p', "patch", NULL, "the changes as a patch that `git apply` takes"},
	{OPT_NAMES, 0, "name-only", NULL, "only the names of what changed"},
	{OPT_ZERO, 'z', "null", NULL,
	 "with --name-only: names as they are, each ended by a NUL byte"},
	{OPT_JSON, 0, "json", NULL, "one JSON object with all entries"},
	{0},
};

static void print_totals(const struct pale_workspace_totals *t)
{
	const struct {
		uint64_t n;
		const char *word;
	} counts[] = {
		{t->added, "added"},	 {t->modified, "modified"}, {t->mode, "mode"},
		{t->touched, "touched"}, {t->deleted, "deleted"},   {t->special, "refused"},
	};
	bool first = true;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		if (counts[i].n) {
			printf("%s%" PRIu64 " %s", first ? " " : ", ", counts[i].n, counts[i].word);
			first = false;
		}
	puts(first ? " nothing changed" : "");
	if (t->conflicts)
		printf(" %" PRIu64 " in conflict: the host changed meanwhile\n", t->conflicts);
	if (t->held)
		printf(" %" PRIu64 " held back: the host would execute or obey them later; "
		       "`pale apply %s PATH` for each that is wanted\n",
		       t->held, t->run);
	if (t->already)
		printf(" %" PRIu64 " are on the host already\n", t->already);
}

static void warn(void *arg, const char *message)
{
	(void)arg;
	fprintf(stderr, "pale diff: %s\n", message);
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_diff_command, argc, argv);
	struct pale_workspace_options o = {.size = sizeof(o), .warn = warn};
	struct pale_workspace_totals t;
	bool patch = false, json = false, names = false, zero = false;
	struct pale_err err = {0};
	char id[PALE_ID_SIZE];
	const char *value, *of;
	int option, r;

	while ((option = cli_next(&args, &value)) > 0)
		switch (option) {
		case OPT_PATCH: patch = true; break;
		case OPT_JSON: json = true; break;
		case OPT_NAMES: names = true; break;
		case OPT_ZERO: zero = true; break;
		}
	if (option < 0)
		return args.status;
	if (patch + json + names > 1)
		return cli_usage("diff", "one of --patch, --json and --name-only");
	o.flags = (patch ? PALE_DIFF_PATCH : 0) | (json ? PALE_DIFF_JSON : 0) |
		  (names ? PALE_DIFF_NAMES : 0) | (cli_colour(stdout) ? PALE_PRINT_COLOUR : 0) |
		  (isatty(STDOUT_FILENO) ? PALE_DIFF_ESCAPED
		   : zero		 ? PALE_DIFF_NUL
					 : 0);
	if (cli_workspace(&args, id, &of, &o, &err) < 0)
		return cli_fail(&err);
	r = pale_workspace_diff(of, &o, stdout, &t, &err);
	if (r == -PALE_E_USAGE)
		return cli_usage("diff", "%s", err.message);
	if (r < 0) {
		fflush(stdout);
		return cli_fail(&err);
	}
	if (!json && !names && !patch)
		print_totals(&t);
	if (t.unsaid)
		fprintf(stderr,
			"pale diff: %" PRIu64
			" entries are not in the patch: directories, times and refused ones\n",
			t.unsaid);
	if (patch && t.conflicts)
		fprintf(stderr,
			"pale diff: %" PRIu64 " files changed on the host meanwhile: for them the "
			"patch starts from the host's version\n",
			t.conflicts);
	return cli_flushed(t.too_large ? 1 : 0);
}

const struct cli_command cli_diff_command = {
	.name = "diff",
	.summary = "show what a run changed in a workspace",
	.usage = "[OPTION...] [RUN] [PATH...]",
	.help = "Shows the changes that a run made to the directories it had as overlays. They are "
		"kept\n"
		"beside its log; the directories themselves are as they were.\n"
		"\n"
		"RUN is an id, the beginning of one, `last` (the default), or `@1` for the run "
		"before it.\n"
		"PATH limits the list to a file or directory: relative to the working directory if "
		"that is\n"
		"in the workspace, or else to the workspace.\n"
		"\n"
		"Letters: A added, M modified, D deleted, T another type, m mode only, ! never "
		"applied.\n"
		"What was only touched (its times) is counted, not listed.\n"
		"\"Held back\" marks what the host would execute or obey later (git hooks, editor "
		"tasks,\n"
		"CI files and the like): `pale apply` leaves it out unless it is named.\n"
		"\n"
		"Names and contents come from the sandbox. On a terminal they are escaped; in a "
		"pipe\n"
		"--patch is byte-exact.\n"
		"\n"
		"Examples:\n"
		"  pale diff\n"
		"  pale diff --patch last src/ | git apply --check\n"
		"  pale diff --json | jq -r '.overlays[].entries[].path'\n",
	.options = options,
	.run = run,
};
