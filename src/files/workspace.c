/* Runs, overlays and paths for looking at changes, applying and discarding them: see workspace.h.
 * Runs with the caller's rights; operands are the caller's, everything else may come from a box. */
#include "workspace.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/str.h"

int workspace_open(const char *run, const char *const *paths, size_t npaths, struct workspace *ret,
		   struct pale_err *err)
{
	_cleanup_workspace_ struct workspace w = WORKSPACE_NONE;
	int r;

	w.operands = paths;
	w.noperands = npaths;
	w.matched = calloc(w.noperands + 1, sizeof(*w.matched));
	if (!w.matched)
		return err_nomem(err, "files");
	r = kept_open(run ? run : "last", &w.kept, err);
	if (r < 0)
		return r;
	*ret = w;
	w = WORKSPACE_NONE;
	return 0;
}

void workspace_done(struct workspace *w)
{
	kept_done(&w->kept);
	free(w->matched);
	*w = WORKSPACE_NONE;
}

/* Joins and resolves "." and ".." by the text alone; NULL: out of memory. */
static char *normalise(const char *base, const char *path)
{
	_cleanup_buf_ struct buf b = BUF_INIT(2 * WALK_PATH_MAX + PATH_MAX);
	const char *parts[] = {path[0] == '/' ? "" : base, path};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		for (const char *s = parts[i]; *s;) {
			size_t n = strcspn(s, "/");

			if (n == 2 && s[0] == '.' && s[1] == '.') {
				while (b.len && b.data[--b.len] != '/')
					;
				if (b.data)
					b.data[b.len] = '\0';
			} else if (n > 1 || (n == 1 && s[0] != '.')) {
				buf_add(&b, "/", 1);
				buf_add(&b, s, n);
			}
			s += n + (s[n] == '/');
		}
	if (b.len == 0)
		buf_add(&b, "/", 1);
	return b.failed ? NULL : take_ptr(b.data);
}

/* path (absolute) relative to dir, or NULL if it is not there. */
static const char *relative(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return path + 1;
	if (strncmp(path, dir, n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	return path[n] ? path + n + 1 : path + n;
}

/* One operand as a path in the overlay: below the caller's working directory if that lies in it, or
 * else below its top; absolute as on the host or as in the box. *ret is NULL if it is not in this
 * overlay. */
static int locate(const struct manifest *m, const char *operand, char **ret)
{
	char cwd[PATH_MAX], real[PATH_MAX];
	const char *root = realpath(m->root, real) ? real : m->root, *found = NULL;
	const char *base = getcwd(cwd, sizeof(cwd)) && relative(cwd, root) ? cwd : root;
	_cleanup_free_ char *path = normalise(base, operand);

	*ret = NULL;
	if (!path)
		return -ENOMEM;
	found = relative(path, root);
	if (!found)
		found = relative(path, m->root);
	if (!found && operand[0] == '/')
		found = relative(path, m->path);
	if (!found)
		return 0;
	*ret = strdup(found);
	return *ret ? 0 : -ENOMEM;
}

static bool has_change(const struct manifest *m, const char *path)
{
	for (size_t i = 0; i < m->count; i++)
		if (review_below(m->entries[i].path, path))
			return true;
	return false;
}

int overlay_open(struct workspace *w, size_t i, struct overlay *ret, struct pale_err *err)
{
	_cleanup_overlay_ struct overlay o = OVERLAY_NONE;
	int r;

	o.n = w->kept.overlays[i];
	o.dir_fd = kept_open_overlay(&w->kept, o.n, err);
	if (o.dir_fd < 0)
		return o.dir_fd;
	r = manifest_load(o.dir_fd, &o.manifest, err);
	if (r < 0)
		return r;
	o.root_fd = host_open_root(&o.manifest, err);
	if (o.root_fd < 0)
		return o.root_fd;
	o.paths = calloc(w->noperands + 1, sizeof(*o.paths));
	if (!o.paths)
		return err_nomem(err, "files");
	for (size_t k = 0; k < w->noperands; k++) {
		char *path;

		if (locate(&o.manifest, w->operands[k], &path) < 0)
			return err_nomem(err, "files");
		if (path && has_change(&o.manifest, path)) {
			o.paths[o.npaths++] = path;
			w->matched[k] = true;
		} else {
			free(path);
		}
	}
	o.wanted = w->noperands == 0 || o.npaths > 0;
	*ret = o;
	o = OVERLAY_NONE;
	return 0;
}

void overlay_done(struct overlay *o)
{
	for (size_t i = 0; o->paths && i < o->npaths; i++)
		free(o->paths[i]);
	free(o->paths);
	free(o->items);
	manifest_done(&o->manifest);
	close_fd(&o->dir_fd);
	close_fd(&o->root_fd);
	*o = OVERLAY_NONE;
}

int overlay_review(struct overlay *o, const struct review_options *options, struct pale_err *err)
{
	struct review_options all = *options;
	const char *home = getenv("HOME");

	all.paths = (const char *const *)o->paths;
	all.npaths = o->npaths;
	all.home = home && home[0] == '/' ? home : NULL;
	free(o->items);
	o->items = NULL;
	return review_changes(&o->manifest, o->root_fd, &all, &o->items, err);
}

const char *workspace_unmatched(const struct workspace *w)
{
	for (size_t i = 0; i < w->noperands; i++)
		if (!w->matched[i])
			return w->operands[i];
	return NULL;
}

char change_letter(const struct change *c)
{
	switch (c->kind) {
	case CHANGE_ADDED: return 'A';
	case CHANGE_MODIFIED: return c->type == c->base.type ? 'M' : 'T';
	case CHANGE_DELETED: return 'D';
	case CHANGE_MODE: return 'm';
	case CHANGE_TOUCHED: return 't';
	default: return '!';
	}
}

void print_name(FILE *out, const char *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 * WALK_PATH_MAX + 4);

	str_escape(&b, s, strlen(s));
	if (b.data && strcmp(b.data, s) == 0 && s[0] != ' ' && s[strlen(s) - 1] != ' ')
		fputs(b.data, out);
	else
		fprintf(out, "\"%s\"", b.data ? b.data : "");
}

int overlay_entry_json(struct buf *b, const struct change *c, const struct review_item *item,
		       bool written)
{
	buf_add(b, "{", 1);
	if (manifest_format_bytes(b, "path", c->path, strlen(c->path)) < 0)
		return -ENOMEM;
	buf_addf(b, ",\"kind\":\"%s\",\"type\":\"%s\"", change_kind_names[c->kind],
		 change_type_names[c->type]);
	if (c->kind != CHANGE_DELETED)
		buf_addf(b, ",\"mode\":\"%04o\",\"mtime_ns\":%" PRId64, c->mode, c->mtime_ns);
	if (c->type == TYPE_FILE && (c->kind == CHANGE_ADDED || c->kind == CHANGE_MODIFIED))
		buf_addf(b, ",\"size\":%" PRIu64, c->size);
	if (c->has_sha256)
		buf_addf(b, ",\"sha256\":\"%s\"", c->sha256);
	if (c->target) {
		buf_add(b, ",", 1);
		if (manifest_format_bytes(b, "target", c->target, strlen(c->target)) < 0)
			return -ENOMEM;
	}
	if (c->base.type != TYPE_NONE)
		buf_addf(b, ",\"was\":{\"type\":\"%s\",\"mode\":\"%04o\",\"size\":%" PRIu64 "}",
			 change_type_names[c->base.type], c->base.mode, c->base.size);
	buf_addf(b, ",\"verdict\":\"%s\"",
		 item->verdict == VERDICT_APPLY && !written ? "applicable"
							    : verdict_names[item->verdict]);
	if (item->rule)
		buf_addf(b, ",\"class\":\"%s\"", item->rule->class);
	if (item->why[0]) {
		buf_add(b, ",", 1);
		if (manifest_format_bytes(b, "why", item->why, strlen(item->why)) < 0)
			return -ENOMEM;
	}
	buf_add(b, "}", 1);
	return b->failed ? -ENOMEM : 0;
}
