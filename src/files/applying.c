/* Applying what a run changed, over all its overlays, with its log: see workspace_apply() in
 * workspace.h. Runs with the caller's rights, outside any box; names and contents come from the
 * box. What is written and what is not goes into the run's log. apply.c does the writing. */
#include <inttypes.h>
#include <string.h>

#include "audit/audit.h"
#include "base/str.h"
#include "files/apply.h"
#include "files/workspace.h"

#define LOGGED_PATHS   200 /* named in the log, of one overlay */
#define LOGGED_REFUSED 100

struct apply_run {
	FILE *out;
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
		fprintf(a->out, " %c  ", change_letter(c));
		print_name(a->out, c->path);
		fputs(c->type == TYPE_DIR ? "/\n" : "\n", a->out);
		break;
	case VERDICT_HELD:
	case VERDICT_CONFLICT:
	case VERDICT_REFUSED:
	case VERDICT_FAILED:
		fprintf(a->out, " %s%-8s%s  ", a->colour ? "\033[1m" : "",
			verdict_names[item->verdict], a->colour ? "\033[m" : "");
		print_name(a->out, c->path);
		fprintf(a->out, ": %s%s%s%s\n", item->why, item->rule ? " (" : "",
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
		fwrite(b.data, 1, b.len, a->out);
		b.len = 0;
	}
	buf_adds(&b, "]}");
	if (b.failed)
		return -ENOMEM;
	fwrite(b.data, 1, b.len, a->out);
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

static void end_json(const struct apply_run *a)
{
	fprintf(a->out,
		"],\"%s\":%" PRIu64 ",\"already\":%" PRIu64 ",\"held\":%" PRIu64
		",\"conflicts\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"failed\":%" PRIu64 "}\n",
		a->dry_run ? "applicable" : "applied", a->counts[VERDICT_APPLY],
		a->counts[VERDICT_ALREADY], a->counts[VERDICT_HELD], a->counts[VERDICT_CONFLICT],
		a->counts[VERDICT_REFUSED], a->counts[VERDICT_FAILED]);
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
		fprintf(a->out, "{\"run\":\"%s\",\"dry_run\":%s,\"overlays\":[", w->kept.id,
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

static int apply(struct apply_run *a, struct workspace *w, struct pale_err *err)
{
	_cleanup_(close_audit) struct audit *audit = NULL;
	_cleanup_(free_overlays) struct overlay *list = NULL;
	/* Before anything is written: no log, no apply. */
	int r = a->dry_run ? 0 : audit_reopen(w->kept.id, &audit, err);

	if (r < 0)
		return r;
	a->audit = audit;
	list = calloc(w->kept.count, sizeof(*list));
	for (size_t i = 0; list && i < w->kept.count; i++)
		list[i] = OVERLAY_NONE;
	r = list ? apply_all(a, w, list, err) : err_nomem(err, "files");
	for (size_t i = 0; list && i < w->kept.count; i++)
		overlay_done(&list[i]);
	if (r == 0 && a->json)
		end_json(a);
	return r;
}

int workspace_apply(const char *run, const struct pale_workspace_options *options, FILE *out,
		    struct pale_workspace_totals *ret, struct pale_err *err)
{
	_cleanup_workspace_ struct workspace w = WORKSPACE_NONE;
	struct apply_run a = {
		.out = out,
		.dry_run = options->flags & PALE_APPLY_DRY_RUN,
		.json = options->flags & PALE_DIFF_JSON,
		.colour = options->flags & PALE_PRINT_COLOUR,
		.review = {.include = options->include,
			   .ninclude = options->ninclude,
			   .all_held = options->flags & PALE_APPLY_ALL_HELD,
			   .force = options->flags & PALE_APPLY_FORCE},
	};
	int r = workspace_open(run, options->paths, options->npaths, &w, err);

	if (r == 0)
		r = apply(&a, &w, err);
	*ret = (struct pale_workspace_totals){
		.applied = a.counts[VERDICT_APPLY],
		.already = a.counts[VERDICT_ALREADY],
		.held = a.counts[VERDICT_HELD],
		.conflicts = a.counts[VERDICT_CONFLICT],
		.refused = a.counts[VERDICT_REFUSED],
		.failed = a.counts[VERDICT_FAILED],
	};
	snprintf(ret->run, sizeof(ret->run), "%s", w.kept.id);
	return r;
}
