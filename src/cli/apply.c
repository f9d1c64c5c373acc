/* pale apply: writes what a run changed in its overlays to the host, file by file. Runs with the
 * caller's rights, outside any box; names and contents come from the box. What is written and what
 * is not goes into the run's log. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "cli/audit.h"
#include "cli/workspace.h"
#include "files/apply.h"

#define LOGGED_PATHS   200 /* named in the log, of one overlay */
#define LOGGED_REFUSED 100

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

struct apply_run {
	struct review_options review;
	bool dry_run, json, colour;
	uint64_t counts[VERDICTS];
	struct audit *audit; /* NULL: dry run */
};

static bool is_problem(enum verdict v)
{
	return v == VERDICT_HELD || v == VERDICT_CONFLICT || v == VERDICT_REFUSED ||
	       v == VERDICT_FAILED;
}

static int log_refused(struct apply_run *a, const struct overlay *o, size_t i, struct pale_err *err)
{
	const struct review_item *item = &o->items[i];
	const char *path = o->manifest.entries[i].path;
	char why[160];
	json_t *body;

	snprintf(why, sizeof(why), "%s%s%s", verdict_names[item->verdict], item->why[0] ? ": " : "",
		 item->why);
	body = json_pack("{s:i,s:o,s:o,s:s}", "n", (int)o->n, "root",
			 audit_text(o->manifest.root, strlen(o->manifest.root), 4096), "path",
			 audit_text(path, strlen(path), 4096), "why", why);
	if (!body)
		return err_nomem(err, "files");
	return audit_append(a->audit, "files", "apply.refused", body, err);
}

/* Changes that are not on the host yet and could be. Entries that were not asked for count, unless
 * the host has them already. */
static int count_remaining(const struct apply_run *a, struct overlay *o, bool reviewed,
			   uint64_t *ret, struct pale_err *err)
{
	const struct review_options nothing = a->review;
	struct review_item *items = o->items;
	int r = 0;

	*ret = 0;
	if (!reviewed || o->npaths) {
		size_t npaths = o->npaths;

		o->items = NULL;
		o->npaths = 0;
		r = overlay_review(o, &nothing, err);
		o->npaths = npaths;
	}
	for (size_t i = 0; r == 0 && i < o->manifest.count; i++) {
		enum verdict v = o->items[i].verdict;
		bool here = v == VERDICT_ALREADY || (v == VERDICT_APPLY && o->items == items);

		*ret += !here && v != VERDICT_REFUSED;
	}
	if (o->items != items) {
		free(o->items);
		o->items = items;
	}
	return r;
}

/* What was done in one overlay, into the run's log. */
static int log_overlay(struct apply_run *a, const struct overlay *o, uint64_t remaining,
		       struct pale_err *err)
{
	json_t *paths = json_array(), *body;
	uint64_t applied = 0, refused = 0;
	int r = 0;

	for (size_t i = 0; i < o->manifest.count; i++) {
		const char *path = o->manifest.entries[i].path;

		if (o->items[i].verdict == VERDICT_APPLY && applied++ < LOGGED_PATHS)
			json_array_append_new(paths, audit_text(path, strlen(path), 4096));
		if (r == 0 && is_problem(o->items[i].verdict) && refused++ < LOGGED_REFUSED)
			r = log_refused(a, o, i, err);
	}
	body = json_pack("{s:i,s:o,s:I,s:I,s:o}", "n", (int)o->n, "root",
			 audit_text(o->manifest.root, strlen(o->manifest.root), 4096), "applied",
			 (json_int_t)applied, "remaining", (json_int_t)remaining, "paths", paths);
	if (r == 0 && !body)
		r = err_nomem(err, "files");
	if (r < 0) {
		json_decref(body);
		return r;
	}
	r = audit_append(a->audit, "files", "apply.done", body, err);
	return r < 0 ? r : audit_sync(a->audit, err);
}

static void print_item(const struct apply_run *a, const struct change *c,
		       const struct review_item *item)
{
	switch (item->verdict) {
	case VERDICT_APPLY:
		if (c->kind == CHANGE_TOUCHED)
			return;
		printf(" %c  ", change_letter(c));
		cli_print_name(c->path);
		puts(c->type == TYPE_DIR ? "/" : "");
		break;
	case VERDICT_HELD:
	case VERDICT_CONFLICT:
	case VERDICT_REFUSED:
	case VERDICT_FAILED:
		printf(" %s%-8s%s  ", a->colour ? "\033[1m" : "", verdict_names[item->verdict],
		       a->colour ? "\033[m" : "");
		cli_print_name(c->path);
		printf(": %s%s%s%s\n", item->why, item->rule ? " (" : "",
		       item->rule ? item->rule->class : "", item->rule ? ")" : "");
		break;
	default: break;
	}
}

static int print_overlay(const struct apply_run *a, const struct overlay *o, bool first)
{
	_cleanup_buf_ struct buf b = BUF_INIT(MANIFEST_LINE_MAX);
	bool comma = false;

	if (!a->json) {
		for (size_t i = 0; i < o->manifest.count; i++)
			print_item(a, &o->manifest.entries[i], &o->items[i]);
		return 0;
	}
	buf_addf(&b, "%s{\"n\":%u,", first ? "" : ",", o->n);
	if (manifest_format_bytes(&b, "root", o->manifest.root, strlen(o->manifest.root)) < 0)
		return -ENOMEM;
	buf_adds(&b, ",\"entries\":[");
	for (size_t i = 0; i < o->manifest.count; i++) {
		if (o->items[i].verdict == VERDICT_SKIP)
			continue;
		if (comma)
			buf_adds(&b, ",");
		comma = true;
		if (overlay_entry_json(&b, &o->manifest.entries[i], &o->items[i], !a->dry_run) < 0)
			return -ENOMEM;
		fwrite(b.data, 1, b.len, stdout);
		b.len = 0;
	}
	buf_adds(&b, "]}");
	if (b.failed)
		return -ENOMEM;
	fwrite(b.data, 1, b.len, stdout);
	return 0;
}

/* Writes one overlay and logs it. others: what remains of the run's other overlays. */
static int write_overlay(struct apply_run *a, struct overlay *o, uint64_t others,
			 uint64_t *ret_remaining, struct pale_err *err)
{
	struct pale_err log_err;
	int r = changes_apply(&o->manifest, o->dir_fd, o->root_fd, &a->review, o->items, err);
	int logged = count_remaining(a, o, true, ret_remaining, &log_err);

	if (logged == 0)
		logged = log_overlay(a, o, others + *ret_remaining, &log_err);
	if (r == 0 && logged < 0) {
		*err = log_err;
		r = logged;
	}
	return r;
}

static int apply_overlay(struct apply_run *a, struct overlay *o, bool first, uint64_t others,
			 uint64_t *ret_remaining, struct pale_err *err)
{
	int r = 0;

	if (!a->dry_run) {
		r = changes_lock(o->dir_fd, err);
		if (r == 0)
			r = changes_clean(&o->manifest, o->dir_fd, o->root_fd, err);
	}
	if (r == 0)
		r = overlay_review(o, &a->review, err);
	if (r < 0)
		return r;
	if (!a->dry_run)
		r = write_overlay(a, o, others, ret_remaining, err);
	for (size_t i = 0; i < o->manifest.count; i++)
		a->counts[o->items[i].verdict]++;
	if (print_overlay(a, o, first) < 0 && r == 0)
		r = err_nomem(err, "files");
	return r;
}

static void print_totals(const struct apply_run *a, const char *id)
{
	if (a->json) {
		printf("],\"%s\":%" PRIu64 ",\"already\":%" PRIu64 ",\"held\":%" PRIu64
		       ",\"conflicts\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"failed\":%" PRIu64
		       "}\n",
		       a->dry_run ? "applicable" : "applied", a->counts[VERDICT_APPLY],
		       a->counts[VERDICT_ALREADY], a->counts[VERDICT_HELD],
		       a->counts[VERDICT_CONFLICT], a->counts[VERDICT_REFUSED],
		       a->counts[VERDICT_FAILED]);
		return;
	}
	printf(" %" PRIu64 " %s", a->counts[VERDICT_APPLY],
	       a->dry_run ? "would be applied" : "applied");
	for (int v = VERDICT_ALREADY; v < VERDICTS; v++)
		if (a->counts[v])
			printf(", %" PRIu64 " %s", a->counts[v],
			       v == VERDICT_ALREADY ? "there already" : verdict_names[v]);
	puts("");
	if (a->counts[VERDICT_HELD])
		printf(" Held back: look with `pale diff --patch %s PATH`, then name it: `pale "
		       "apply %s PATH`.\n",
		       id, id);
	if (a->counts[VERDICT_CONFLICT])
		printf(" Conflicts: merge with `pale diff --patch %s PATH`, or `pale apply "
		       "--force-conflicts %s "
		       "PATH`.\n",
		       id, id);
}

static void close_audit(struct audit **a)
{
	audit_free(*a);
}

static void free_overlays(struct overlay **list)
{
	free(*list);
}

static int apply_all(struct apply_run *a, struct workspace *w, struct overlay *list,
		     struct pale_err *err)
{
	uint64_t remaining = 0;
	bool first = true;
	int r = 0;

	for (size_t i = 0; r == 0 && i < w->kept.count; i++)
		r = overlay_open(w, i, &list[i], err);
	if (r < 0)
		return r;
	if (workspace_unmatched(w))
		return err_set(err, PALE_E_USAGE, "files", 0, "run %s has no change at %s",
			       w->kept.id, QUOTED(workspace_unmatched(w)));
	/* Those that are left alone are asked at once; the others count in full until their turn.
	 */
	for (size_t i = 0; !a->dry_run && r == 0 && i < w->kept.count; i++) {
		uint64_t n = list[i].manifest.count;

		if (!list[i].wanted)
			r = count_remaining(a, &list[i], false, &n, err);
		remaining += n;
	}
	if (r == 0 && a->json)
		printf("{\"run\":\"%s\",\"dry_run\":%s,\"overlays\":[", w->kept.id,
		       a->dry_run ? "true" : "false");
	for (size_t i = 0; r == 0 && i < w->kept.count; i++) {
		uint64_t left = 0;

		if (!list[i].wanted)
			continue;
		remaining -= list[i].manifest.count;
		r = apply_overlay(a, &list[i], first, remaining, &left, err);
		remaining += left;
		first = false;
	}
	return r;
}

static int apply(struct apply_run *a, int argc, char **argv)
{
	_cleanup_workspace_ struct workspace w = WORKSPACE_NONE;
	_cleanup_(close_audit) struct audit *audit = NULL;
	_cleanup_(free_overlays) struct overlay *list = NULL;
	struct pale_err err = {0};
	int r;

	if (workspace_open(argc, argv, &w, &err) < 0)
		return cli_fail(&err);
	/* Before anything is written: no log, no apply. */
	if (!a->dry_run && audit_reopen(w.kept.id, &audit, &err) < 0)
		return cli_fail(&err);
	a->audit = audit;
	list = calloc(w.kept.count, sizeof(*list));
	for (size_t i = 0; list && i < w.kept.count; i++)
		list[i] = OVERLAY_NONE;
	r = list ? apply_all(a, &w, list, &err) : err_nomem(&err, "files");
	for (size_t i = 0; list && i < w.kept.count; i++)
		overlay_done(&list[i]);
	if (r == -PALE_E_USAGE)
		return cli_usage("apply", "%s", err.message);
	if (r < 0) {
		fflush(stdout);
		return cli_fail(&err);
	}
	print_totals(a, w.kept.id);
	for (int v = 0; v < VERDICTS; v++)
		if (is_problem((enum verdict)v) && a->counts[v])
			return cli_flushed(1);
	return cli_flushed(0);
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_apply_command, argc, argv);
	_cleanup_free_ const char **include = calloc((size_t)argc, sizeof(*include));
	struct apply_run a = {0};
	const char *value;
	int id;

	if (!include)
		return CLI_EXIT_PALE;
	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_DRY_RUN: a.dry_run = true; break;
		case OPT_INCLUDE: include[a.review.ninclude++] = value; break;
		case OPT_ALL_HELD: a.review.all_held = true; break;
		case OPT_FORCE: a.review.force = true; break;
		case OPT_JSON: a.json = true; break;
		}
	if (id < 0)
		return args.status;
	a.review.include = include;
	a.colour = cli_colour(stdout);
	return apply(&a, args.argc, args.argv);
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
		"A file that changed on the host since the run began is a conflict and is left "
		"alone.\n"
		"Applying again is harmless: what is there already is recognised.\n"
		"\n"
		"RUN is an id, the beginning of one, or \"last\" (the default). PATH is relative "
		"to the\n"
		"working directory if that is in the workspace, or else to the workspace.\n"
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
