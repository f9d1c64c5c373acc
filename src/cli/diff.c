/* pale diff: what a run changed in its overlays. Runs with the caller's rights, outside any box,
 * and changes nothing. Names and contents come from the box: on a terminal they are escaped; the
 * bytes of
 * --patch and -z go out as they are only where no terminal is. */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "cli/audit.h"
#include "cli/workspace.h"
#include "files/patch.h"

enum { OPT_PATCH = 1, OPT_JSON, OPT_NAMES, OPT_ZERO };
static const struct cli_option options[] = {
	{OPT_PATCH, 'p', "patch", NULL, "the changes as a patch that `git apply` takes"},
	{OPT_NAMES, 0, "name-only", NULL, "only the names of what changed"},
	{OPT_ZERO, 'z', "null", NULL,
	 "with --name-only: names as they are, each ended by a NUL byte"},
	{OPT_JSON, 0, "json", NULL, "one JSON object with all entries"},
	{0},
};

struct diff {
	bool patch, names, zero, json;
	bool colour, terminal;
	struct patcher *patcher; /* NULL: none, the summary does without line counts */
	uint64_t counts[CHANGE_KINDS], held, conflicts, applied;
	uint64_t unsaid; /* what a patch cannot say */
	bool too_large;
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
static void print_escaped(const char *s, size_t len)
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
	fwrite(b.data ? b.data : "", 1, b.len, stdout);
}

static void print_patch_line(const struct diff *d, const char *s, size_t len)
{
	const char *code = len && s[0] == '+'	? GREEN
			   : len && s[0] == '-' ? RED
			   : len && s[0] == '@' ? CYAN
			   : len && s[0] == 'd' ? BOLD
						: "";

	fputs(paint(d, code), stdout);
	print_escaped(s, len);
	fputs(*code ? paint(d, PLAIN) : "", stdout);
	putchar('\n');
}

/* Pieces of the patch: straight out, or line by line onto a terminal. */
static int sink(void *arg, const char *text, size_t len)
{
	struct diff *d = arg;

	if (!d->terminal)
		return fwrite(text, 1, len, stdout) == len ? 0 : -1;
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
	return ferror(stdout) ? -1 : 0;
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
			fprintf(stderr, "pale diff: %s is too large for a patch and is left out\n",
				QUOTED(c->path));
			d->too_large = true;
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
		printf(" | Bin %s -> %s bytes",
		       num_format_size(was, c->base.type ? c->base.size : 0),
		       num_format_size(is, c->kind == CHANGE_DELETED ? 0 : c->size));
		return;
	}
	if (total > most) {
		plus = plus ? (plus * most + total - 1) / total : 0;
		minus = minus ? (minus * most + total - 1) / total : 0;
	}
	printf(" | %" PRIu64 " ", total);
	fputs(paint(d, GREEN), stdout);
	for (uint64_t i = 0; i < plus; i++)
		putchar('+');
	fputs(paint(d, RED), stdout);
	for (uint64_t i = 0; i < minus; i++)
		putchar('-');
	fputs(paint(d, PLAIN), stdout);
}

static void print_entry(struct diff *d, const struct change *c, const struct review_item *item,
			const struct patch_stat *stat)
{
	static const char *const codes[CHANGE_KINDS] = {
		[CHANGE_ADDED] = GREEN, [CHANGE_DELETED] = RED, [CHANGE_REFUSED] = RED};

	printf(" %s%c%s  ", paint(d, codes[c->kind] ? codes[c->kind] : CYAN), change_letter(c),
	       paint(d, PLAIN));
	cli_print_name(c->path);
	if (c->type == TYPE_DIR)
		putchar('/');
	if (c->target) {
		fputs(" -> ", stdout);
		cli_print_name(c->target);
	}
	if (c->kind == CHANGE_MODE)
		printf(" | mode %04o -> %04o", c->base.mode, c->mode);
	else if (c->kind == CHANGE_ADDED || c->kind == CHANGE_MODIFIED || c->kind == CHANGE_DELETED)
		print_counts(d, c, stat);
	switch (item->verdict) {
	case VERDICT_HELD:
		printf("  %s[held back: %s]%s", paint(d, BOLD),
		       item->rule ? item->rule->class : "in it", paint(d, PLAIN));
		break;
	case VERDICT_CONFLICT:
		printf("  %s[conflict: %s]%s", paint(d, RED), item->why, paint(d, PLAIN));
		break;
	case VERDICT_REFUSED:
	case VERDICT_FAILED:
		printf("  %s[refused: %s]%s", paint(d, RED), item->why, paint(d, PLAIN));
		break;
	case VERDICT_ALREADY: printf("  %s[applied]%s", paint(d, DIM), paint(d, PLAIN)); break;
	default: break;
	}
	putchar('\n');
}

static int print_summary(struct diff *d, struct overlay *o, struct pale_err *err)
{
	_cleanup_host_dir_ struct host_dir dir = HOST_DIR(o->root_fd);

	fputs(paint(d, BOLD), stdout);
	cli_print_name(o->manifest.root);
	puts(d->colour ? PLAIN : "");
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

static void print_totals(const struct diff *d, const char *id)
{
	static const char *const words[CHANGE_KINDS] = {"added",   "modified", "mode",
							"touched", "deleted",  "refused"};
	bool first = true;

	for (int k = 0; k < CHANGE_KINDS; k++)
		if (d->counts[k]) {
			printf("%s%" PRIu64 " %s", first ? " " : ", ", d->counts[k], words[k]);
			first = false;
		}
	puts(first ? " nothing changed" : "");
	if (d->conflicts)
		printf(" %" PRIu64 " in conflict: the host changed meanwhile\n", d->conflicts);
	if (d->held)
		printf(" %" PRIu64 " held back: the host would execute or obey them later; "
		       "`pale apply %s PATH` for each that is wanted\n",
		       d->held, id);
	if (d->applied)
		printf(" %" PRIu64 " are on the host already\n", d->applied);
}

/* ---------------------------------------------------------------- names and JSON */

static void print_names(const struct diff *d, const struct overlay *o)
{
	for (size_t i = 0; i < o->manifest.count; i++) {
		const char *path = o->manifest.entries[i].path;

		if (!is_selected(o, i))
			continue;
		if (d->zero) {
			fwrite(path, 1, strlen(path) + 1, stdout);
			continue;
		}
		cli_print_name(path);
		putchar('\n');
	}
}

static int print_json(const struct overlay *o, bool first)
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
		fwrite(b.data, 1, b.len, stdout);
		b.len = 0;
	}
	buf_adds(&b, "]}");
	if (b.failed)
		return -ENOMEM;
	fwrite(b.data, 1, b.len, stdout);
	return 0;
}

/* ---------------------------------------------------------------- */

static int print_overlay(struct diff *d, struct overlay *o, bool first, struct pale_err *err)
{
	if (d->json)
		return print_json(o, first) < 0 ? err_nomem(err, "files") : 0;
	if (d->names) {
		print_names(d, o);
		return 0;
	}
	return d->patch ? print_patch(d, o, err) : print_summary(d, o, err);
}

static int show(struct diff *d, int argc, char **argv)
{
	_cleanup_workspace_ struct workspace w = WORKSPACE_NONE;
	_cleanup_patcher_ struct patcher *patcher = NULL;
	const struct review_options review = {0};
	struct pale_err err = {0};
	bool first = true;

	if (workspace_open(argc, argv, &w, &err) < 0)
		return cli_fail(&err);
	if (d->patch || (!d->json && !d->names)) {
		if (patcher_start(&patcher, &err) < 0)
			return cli_fail(&err);
		d->patcher = patcher;
	}
	if (d->json)
		printf("{\"run\":\"%s\",\"overlays\":[", w.kept.id);
	for (size_t i = 0; i < w.kept.count; i++) {
		_cleanup_overlay_ struct overlay o = OVERLAY_NONE;

		if (overlay_open(&w, i, &o, &err) < 0)
			return cli_fail(&err);
		if (!o.wanted)
			continue;
		if (overlay_review(&o, &review, &err) < 0 || print_overlay(d, &o, first, &err) < 0)
			return cli_fail(&err);
		first = false;
	}
	if (d->json)
		puts("]}");
	if (workspace_unmatched(&w))
		return cli_usage("diff", "run %s has no change at %s", w.kept.id,
				 QUOTED(workspace_unmatched(&w)));
	if (!d->json && !d->names && !d->patch)
		print_totals(d, w.kept.id);
	if (d->unsaid)
		fprintf(stderr,
			"pale diff: %" PRIu64
			" entries are not in the patch: directories, times and refused "
			"ones\n",
			d->unsaid);
	if (d->patch && d->conflicts)
		fprintf(stderr,
			"pale diff: %" PRIu64 " files changed on the host meanwhile: for them the "
			"patch starts from the host's version\n",
			d->conflicts);
	return cli_flushed(d->too_large ? 1 : 0);
}

static int run(int argc, char **argv)
{
	_cleanup_cli_args_ struct cli_args args = CLI_ARGS(&cli_diff_command, argc, argv);
	struct diff d = {.line = BUF_INIT((size_t)1 << 30)};
	const char *value;
	int id, status;

	while ((id = cli_next(&args, &value)) > 0)
		switch (id) {
		case OPT_PATCH: d.patch = true; break;
		case OPT_JSON: d.json = true; break;
		case OPT_NAMES: d.names = true; break;
		case OPT_ZERO: d.zero = true; break;
		}
	if (id < 0)
		return args.status;
	if (d.patch + d.json + d.names > 1)
		return cli_usage("diff", "one of --patch, --json and --name-only");
	d.terminal = isatty(STDOUT_FILENO);
	d.colour = cli_colour(stdout);
	d.zero = d.zero && !d.terminal;
	status = show(&d, args.argc, args.argv);
	buf_done(&d.line);
	return status;
}

const struct cli_command cli_diff_command = {
	.name = "diff",
	.summary = "show what a run changed in a workspace",
	.usage = "[OPTION...] [RUN] [PATH...]",
	.help = "Shows the changes that a run made to the directories it had as overlays. They are "
		"kept\n"
		"beside its log; the directories themselves are as they were.\n"
		"\n"
		"RUN is an id, the beginning of one, or \"last\" (the default). PATH limits the "
		"list to a\n"
		"file or directory: relative to the working directory if that is in the workspace, "
		"or\n"
		"else to the workspace.\n"
		"\n"
		"Letters: A added, M modified, D deleted, T another type, m mode only, ! never "
		"applied.\n"
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
