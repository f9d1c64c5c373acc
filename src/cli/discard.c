/* pale discard: throws the kept changes of a run away. Runs with the caller's rights, outside any
 * box. */
#include <string.h>

#include "base/str.h"
#include "cli/audit.h"
#include "cli/workspace.h"
#include "files/apply.h"

enum { OPT_YES = 1 };
static const struct cli_option options[] = {
	{OPT_YES, 'y', "yes", NULL, "don't ask"},
	{0},
};

static bool confirmed(const char *id, bool yes)
{
	char answer[16];

	if (yes)
		return true;
	printf("Throw away the changes of run %s? [y/N] ", id);
	fflush(stdout);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static void close_audit(struct audit **a)
{
	audit_free(*a);
}

/* What a killed apply left on the host, and an event. */
static int let_go(struct workspace *w, size_t i, struct audit *audit, struct pale_err *err)
{
	_cleanup_overlay_ struct overlay o = OVERLAY_NONE;
	json_t *body;
	int r = overlay_open(w, i, &o, err);

	/* The directory is gone or another one: nothing of it to clean, and the changes go all the
	 * same. */
	if (r < 0)
		body = json_pack("{s:i}", "n", (int)w->kept.overlays[i]);
	else
		body = json_pack("{s:i,s:o}", "n", (int)o.n, "root",
				 audit_text(o.manifest.root, strlen(o.manifest.root), 4096));
	if (!body)
		return err_nomem(err, "files");
	if (r == 0) {
		r = changes_lock(o.dir_fd, err);
		if (r == 0)
			r = changes_clean(&o.manifest, o.dir_fd, o.root_fd, err);
		if (r < 0) {
			json_decref(body);
			return r;
		}
	}
	return audit_append(audit, "files", "discard.done", body, err);
}

static int discard(bool yes, int argc, char **argv)
{
	_cleanup_workspace_ struct workspace w = WORKSPACE_NONE;
	_cleanup_(close_audit) struct audit *audit = NULL;
	struct pale_err err = {0};
	int r = 0;

	if (workspace_open(argc, argv, &w, &err) < 0)
		return cli_fail(&err);
	if (w.noperands)
		return cli_usage("discard", "there is no run %s (changes are discarded as a whole)",
				 QUOTED(w.operands[0]));
	if (!confirmed(w.kept.id, yes)) {
		fprintf(stderr, "pale discard: nothing was thrown away\n");
		return 1;
	}
	if (audit_reopen(w.kept.id, &audit, &err) < 0)
		return cli_fail(&err);
	for (size_t i = 0; r == 0 && i < w.kept.count; i++)
		r = let_go(&w, i, audit, &err);
	if (r == 0)
		r = audit_sync(audit, &err);
	if (r == 0)
		r = kept_remove(&w.kept, &err);
	if (r < 0)
		return cli_fail(&err);
	printf("The changes of run %s are thrown away.\n", w.kept.id);
	return cli_flushed(0);
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_discard_command, argc, argv);
	bool yes = false;
	const char *value;
	int id;

	while ((id = cli_next(&args, &value)) > 0)
		yes = true;
	if (id < 0)
		return args.status;
	if (!yes && !(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)))
		return cli_usage("discard", "without a terminal to ask on, --yes is needed");
	return discard(yes, args.argc, args.argv);
}

const struct cli_command cli_discard_command = {
	.name = "discard",
	.summary = "throw away what a run changed in a workspace",
	.usage = "[OPTION...] [RUN]",
	.help = "Removes the changes of a run that were kept for review. The directories on the "
		"host are not\n"
		"touched; what was applied stays. The run's log stays too.\n"
		"\n"
		"RUN is an id, the beginning of one, or \"last\" (the default). On a terminal it "
		"asks first.\n"
		"\n"
		"Examples:\n"
		"  pale discard\n"
		"  pale discard --yes 01j9\n",
	.options = options,
	.run = run,
};
