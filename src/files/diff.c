/* What a run changed in its overlays, printed: see workspace_diff() in workspace.h. Runs with the
 * caller's rights, outside any box, and changes nothing. Names and contents come from the box: they
 * are escaped, but for the bytes of a patch that is not for a terminal, and names ended by NUL. */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "files/patch.h"
#include "files/workspace.h"

struct diff {
	const struct pale_workspace_options *options;
	FILE *out;
	bool patch, names, zero, json;
	bool colour, terminal;
	struct patcher *patcher; /* NULL: none, the summary does without line counts */
	uint64_t counts[CHANGE_KINDS], held, conflicts, applied;
	uint64_t unsaid; /* what a patch cannot say */
	uint64_t too_large;
	struct buf line; /* of a patch on a terminal, until its newline */
};

#define RED   "\033[31m"
#define GREEN "\033[32m"
#define CYAN  "\033[36m"
#define BOLD  "\033[1m"
#define DIM   "\033[2m"
#define PLAIN "\033[m"

static const char *paint(const struct diff *d, const char *code)
{
	return d->colour ? code : "";
}

/* ---------------------------------------------------------------- patch */

/* Text on a terminal: what could be obeyed is escaped; tabs are not. */
static void print_escaped(const struct diff *d, const char *s, size_t len)
{
	_cleanup_buf_ struct buf b = BUF_INIT(len * 4 + 64);

	for (size_t i = 0; i <= len; i++) {
		size_t from = i;

		while (i < len && s[i] != '\t' && s[i] != '"' && s[i] != '\\')
			i++;
		str_escape(&b, s + from, i - from);
		if (i < len)
			buf_add(&b, s + i, 1);
	}
	fwrite(b.data ? b.data : "", 1, b.len, d->out);
}

static void print_patch_line(const struct diff *d, const char *s, size_t len)
{
	const char *code = len && s[0] == '+'	? GREEN
			   : len && s[0] == '-' ? RED
			   : len && s[0] == '@' ? CYAN
			   : len && s[0] == 'd' ? BOLD
						: "";

	fputs(paint(d, code), d->out);
	print_escaped(d, s, len);
	fputs(*code ? paint(d, PLAIN) : "", d->out);
	fputc('\n', d->out);
}

/* Pieces of the patch: straight out, or line by line onto a terminal. */
static int sink(void *arg, const char *text, size_t len)
{
	struct diff *d = arg;

	if (!d->terminal)
		return fwrite(text, 1, len, d->out) == len ? 0 : -1;
	for (size_t i = 0; i < len;) {
		const char *end = memchr(text + i, '\n', len - i);
		size_t n = end ? (size_t)(end - text) - i : len - i;

		if (buf_add(&d->line, text + i, n) < 0)
			return -1;
		i += n + (end != NULL);
		if (!end)
			break;
		print_patch_line(d, d->line.data ? d->line.data : "", d->line.len);
		d->line.len = 0;
	}
	return ferror(d->out) ? -1 : 0;
}

static void warn_large(const struct diff *d, const char *path)
{
	char text[256];

	snprintf(text, sizeof(text), "%s is too large for a patch and is left out", QUOTED(path));
	if (d->options->warn)
		d->options->warn(d->options->arg, text);
}

static bool is_selected(const struct overlay *o, size_t i)
{
	return o->items[i].verdict != VERDICT_SKIP ||
	       /* Directories are skipped for what is in them; the caller still asked for them. */
	       o->npaths == 0;
}

static int print_patch(struct diff *d, struct overlay *o, struct pale_err *err)
{
	_cleanup_host_dir_ struct host_dir dir = HOST_DIR(o->root_fd);

	for (size_t i = 0; i < o->manifest.count; i++) {
		const struct change *c = &o->manifest.entries[i];
		struct patch_stat stat;
		int r;

		if (!is_selected(o, i))
			continue;
		r = patcher_change(d->patcher, &o->manifest, &dir, c, sink, d, &stat, err);
		if (r < 0)
			return r;
		d->unsaid += c->type == TYPE_DIR || c->kind == CHANGE_TOUCHED ||
			     c->kind == CHANGE_REFUSED;
		if (o->items[i].verdict == VERDICT_CONFLICT)
			d->conflicts++;
		if (stat.too_large) {
			warn_large(d, c->path);
			d->too_large++;
		}
	}
	return 0;
}

/* ---------------------------------------------------------------- summary */

static void print_counts(const struct diff *d, const struct change *c,
			 const struct patch_stat *stat)
{
	uint64_t total = stat->added + stat->removed, most = 40;
	uint64_t plus = stat->added, minus = stat->removed;
	char was[NUM_TEXT], is[NUM_TEXT];

	if (c->type != TYPE_FILE && c->type != TYPE_SYMLINK)
		return;
	if (stat->binary || stat->too_large || !d->patcher) {
		fprintf(d->out, " | Bin %s -> %s bytes",
			num_format_size(was, c->base.type ? c->base.size : 0),
			num_format_size(is, c->kind == CHANGE_DELETED ? 0 : c->size));
		return;
	}
	if (total > most) {
		plus = plus ? (plus * most + total - 1) / total : 0;
		minus = minus ? (minus * most + total - 1) / total : 0;
	}
	fprintf(d->out, " | %" PRIu64 " ", total);
	fputs(paint(d, GREEN), d->out);
	for (uint64_t i = 0; i < plus; i++)
		fputc('+', d->out);
	fputs(paint(d, RED), d->out);
	for (uint64_t i = 0; i < minus; i++)
		fputc('-', d->out);
	fputs(paint(d, PLAIN), d->out);
}

static void print_entry(struct diff *d, const struct change *c, const struct review_item *item,
			const struct patch_stat *stat)
{
	static const char *const codes[CHANGE_KINDS] = {
		[CHANGE_ADDED] = GREEN, [CHANGE_DELETED] = RED, [CHANGE_REFUSED] = RED};

	fprintf(d->out, " %s%c%s  ", paint(d, codes[c->kind] ? codes[c->kind] : CYAN),
		change_letter(c), paint(d, PLAIN));
	print_name(d->out, c->path);
	if (c->type == TYPE_DIR)
		fputc('/', d->out);
	if (c->target) {
		fputs(" -> ", d->out);
		print_name(d->out, c->target);
	}
	if (c->kind == CHANGE_MODE)
		fprintf(d->out, " | mode %04o -> %04o", c->base.mode, c->mode);
	else if (c->kind == CHANGE_ADDED || c->kind == CHANGE_MODIFIED || c->kind == CHANGE_DELETED)
		print_counts(d, c, stat);
	switch (item->verdict) {
	case VERDICT_HELD:
		fprintf(d->out, "  %s[held back: %s]%s", paint(d, BOLD),
			item->rule ? item->rule->class : "in it", paint(d, PLAIN));
		break;
	case VERDICT_CONFLICT:
		fprintf(d->out, "  %s[conflict: %s]%s", paint(d, RED), item->why, paint(d, PLAIN));
		break;
	case VERDICT_REFUSED:
	case VERDICT_FAILED:
		fprintf(d->out, "  %s[refused: %s]%s", paint(d, RED), item->why, paint(d, PLAIN));
		break;
	case VERDICT_ALREADY:
		fprintf(d->out, "  %s[applied]%s", paint(d, DIM), paint(d, PLAIN));
		break;
	default: break;
	}
	fputc('\n', d->out);
}

static int print_summary(struct diff *d, struct overlay *o, struct pale_err *err)
{
	_cleanup_host_dir_ struct host_dir dir = HOST_DIR(o->root_fd);

	fputs(paint(d, BOLD), d->out);
	print_name(d->out, o->manifest.root);
	fprintf(d->out, "%s\n", d->colour ? PLAIN : "");
	for (size_t i = 0; i < o->manifest.count; i++) {
		const struct change *c = &o->manifest.entries[i];
		struct patch_stat stat = {0};
		int r;

		if (!is_selected(o, i))
			continue;
		d->counts[c->kind]++;
		d->held += o->items[i].verdict == VERDICT_HELD;
		d->conflicts += o->items[i].verdict == VERDICT_CONFLICT;
		d->applied += o->items[i].verdict == VERDICT_ALREADY;
		/* A time alone is counted, not listed: builds touch thousands of files. */
		if (c->kind == CHANGE_TOUCHED)
			continue;
		if (d->patcher) {
			r = patcher_change(d->patcher, &o->manifest, &dir, c, NULL, NULL, &stat,
					   err);
			if (r < 0)
				return r;
		}
		print_entry(d, c, &o->items[i], &stat);
	}
	return 0;
}

/* ---------------------------------------------------------------- names and JSON */

static void print_names(const struct diff *d, const struct overlay *o)
{
	for (size_t i = 0; i < o->manifest.count; i++) {
		const char *path = o->manifest.entries[i].path;

		if (!is_selected(o, i))
			continue;
		if (d->zero) {
			fwrite(path, 1, strlen(path) + 1, d->out);
			continue;
		}
		print_name(d->out, path);
		fputc('\n', d->out);
	}
}

static int print_json(const struct diff *d, const struct overlay *o, bool first)
{
	_cleanup_buf_ struct buf b = BUF_INIT(MANIFEST_LINE_MAX);
	bool comma = false;

	buf_addf(&b, "%s{\"n\":%u,", first ? "" : ",", o->n);
	if (manifest_format_bytes(&b, "root", o->manifest.root, strlen(o->manifest.root)) < 0)
		return -ENOMEM;
	buf_adds(&b, ",\"entries\":[");
	for (size_t i = 0; i < o->manifest.count; i++) {
		if (!is_selected(o, i))
			continue;
		if (comma)
			buf_adds(&b, ",");
		comma = true;
		if (overlay_entry_json(&b, &o->manifest.entries[i], &o->items[i], false) < 0)
			return -ENOMEM;
		fwrite(b.data, 1, b.len, d->out);
		b.len = 0;
	}
	buf_adds(&b, "]}");
	if (b.failed)
		return -ENOMEM;
	fwrite(b.data, 1, b.len, d->out);
	return 0;
}

/* ---------------------------------------------------------------- */

static int print_overlay(struct diff *d, struct overlay *o, bool first, struct pale_err *err)
{
	if (d->json)
		return print_json(d, o, first) < 0 ? err_nomem(err, "files") : 0;
	if (d->names) {
		print_names(d, o);
		return 0;
	}
	return d->patch ? print_patch(d, o, err) : print_summary(d, o, err);
}

static int show(struct diff *d, struct workspace *w, struct pale_err *err)
{
	_cleanup_patcher_ struct patcher *patcher = NULL;
	const struct review_options review = {0};
	bool first = true;
	int r;

	if (d->patch || (!d->json && !d->names)) {
		r = patcher_start(&patcher, err);
		if (r < 0)
			return r;
		d->patcher = patcher;
	}
	if (d->json)
		fprintf(d->out, "{\"run\":\"%s\",\"overlays\":[", w->kept.id);
	for (size_t i = 0; i < w->kept.count; i++) {
		_cleanup_overlay_ struct overlay o = OVERLAY_NONE;

		r = overlay_open(w, i, &o, err);
		if (r < 0)
			return r;
		if (!o.wanted)
			continue;
		r = overlay_review(&o, &review, err);
		if (r == 0)
			r = print_overlay(d, &o, first, err);
		if (r < 0)
			return r;
		first = false;
	}
	if (d->json)
		fputs("]}\n", d->out);
	if (workspace_unmatched(w))
		return err_set(err, PALE_E_USAGE, "files", 0, "run %s has no change at %s",
			       w->kept.id, QUOTED(workspace_unmatched(w)));
	return 0;
}

int workspace_diff(const char *run, const struct pale_workspace_options *options, FILE *out,
		   struct pale_workspace_totals *ret, struct pale_err *err)
{
	_cleanup_workspace_ struct workspace w = WORKSPACE_NONE;
	struct diff d = {
		.options = options,
		.out = out,
		.patch = options->flags & PALE_DIFF_PATCH,
		.names = options->flags & PALE_DIFF_NAMES,
		.zero = options->flags & PALE_DIFF_NUL,
		.json = options->flags & PALE_DIFF_JSON,
		.colour = options->flags & PALE_PRINT_COLOUR,
		.terminal = options->flags & PALE_DIFF_ESCAPED,
		.line = BUF_INIT((size_t)1 << 30),
	};
	int r = workspace_open(run, options->paths, options->npaths, &w, err);

	if (r == 0)
		r = show(&d, &w, err);
	buf_done(&d.line);
	*ret = (struct pale_workspace_totals){
		.added = d.counts[CHANGE_ADDED],
		.modified = d.counts[CHANGE_MODIFIED],
		.mode = d.counts[CHANGE_MODE],
		.touched = d.counts[CHANGE_TOUCHED],
		.deleted = d.counts[CHANGE_DELETED],
		.special = d.counts[CHANGE_REFUSED],
		.already = d.applied,
		.held = d.held,
		.conflicts = d.conflicts,
		.unsaid = d.unsaid,
		.too_large = d.too_large,
	};
	snprintf(ret->run, sizeof(ret->run), "%s", w.kept.id);
	return r;
}
