/* Reviewing changes: see review.h. Runs in `pale diff` and `pale apply` with the caller's rights;
 * reads the host's tree, writes nothing. What it finds may change at once: apply.c checks again
 * when it writes. */
#include "files/review.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>

const char *const verdict_names[VERDICTS] = {
	[VERDICT_SKIP] = "skipped",  [VERDICT_APPLY] = "applied",     [VERDICT_ALREADY] = "already",
	[VERDICT_HELD] = "held",     [VERDICT_CONFLICT] = "conflict", [VERDICT_REFUSED] = "refused",
	[VERDICT_FAILED] = "failed",
};

bool review_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return n == 0 || (strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]));
}

bool review_has_setid(const struct change *c)
{
	return c->type == TYPE_FILE && c->kind != CHANGE_DELETED && (c->mode & (S_ISUID | S_ISGID));
}

static bool selected(const struct review_options *o, const char *path)
{
	if (o->npaths == 0)
		return true;
	for (size_t i = 0; i < o->npaths; i++)
		if (review_below(path, o->paths[i]))
			return true;
	return false;
}

/* Whether the caller named this very entry, or a directory of which everything is held back. */
static bool named(const struct review_options *o, const struct held *h, const char *path)
{
	for (size_t i = 0; i < o->npaths; i++)
		if (strcmp(path, o->paths[i]) == 0 ||
		    (*o->paths[i] && review_below(path, o->paths[i]) &&
		     held_names_directory(h, o->paths[i])))
			return true;
	for (size_t i = 0; i < o->ninclude; i++)
		if (fnmatch(o->include[i], path, 0) == 0)
			return true;
	return false;
}

static void set(struct review_item *item, enum verdict verdict, const char *why)
{
	item->verdict = verdict;
	snprintf(item->why, sizeof(item->why), "%s", why);
}

/* The nearest entry above path that is there in the end, or NULL. */
static const struct change *entry_above(const struct manifest *m, const char *path)
{
	_cleanup_free_ char *up = strdup(path);
	const struct change *found = NULL;
	char *slash;

	while (up && !found && (slash = strrchr(up, '/'))) {
		*slash = '\0';
		found = manifest_find(m, up);
		if (found && found->kind == CHANGE_DELETED)
			found = NULL;
	}
	return found;
}

/* The parent directory cannot be entered: it will be made by another entry, or is gone with it, or
 * the host changed. */
static void without_parent(const struct manifest *m, const struct change *c, int error,
			   struct review_item *item)
{
	const struct change *above = entry_above(m, c->path);

	if (c->kind == CHANGE_DELETED && (error == -ENOENT || (above && above->type != TYPE_DIR)))
		set(item, VERDICT_ALREADY, "");
	else if (above && above->type == TYPE_DIR && above->kind != CHANGE_DELETED &&
		 c->base.type == TYPE_NONE)
		set(item, VERDICT_APPLY, "");
	else
		set(item, VERDICT_CONFLICT,
		    error == -ENOENT ? "the directory is gone on the host"
				     : "the directory is something else on the host now");
}

/* Against the host as it is now. */
static int compare_with_host(const struct manifest *m, const struct change *c, struct host_dir *dir,
			     bool force, struct review_item *item)
{
	struct stat st;
	const struct stat *now = NULL;
	const char *name;
	int parent = host_parent(dir, c->path, false, &name), r;

	if (parent == -EXDEV) {
		set(item, VERDICT_REFUSED, "something is mounted there on the host");
		return 0;
	}
	if (parent == -ELOOP || parent == -ENOTDIR || parent == -ENOENT) {
		without_parent(m, c, parent, item);
		return 0;
	}
	if (parent < 0)
		return parent;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		now = &st;
	else if (errno != ENOENT)
		return -errno;
	if (host_matches_base(m, c, now)) {
		set(item, VERDICT_APPLY, "");
		return 0;
	}
	r = host_has_change(m, c, parent, name, now);
	if (r < 0)
		return r;
	if (r == 1)
		set(item, VERDICT_ALREADY, "");
	else if (force && (!now || !S_ISDIR(now->st_mode)) && c->base.type != TYPE_DIR)
		set(item, VERDICT_APPLY, "");
	else
		set(item, VERDICT_CONFLICT,
		    !now			? "it is gone on the host"
		    : c->base.type == TYPE_NONE ? "the host has something of that name meanwhile"
						: "it changed on the host meanwhile");
	return 0;
}

static int judge(const struct manifest *m, const struct change *c, const struct held *h,
		 struct host_dir *dir, const struct review_options *o, struct review_item *item)
{
	int r;

	if (!selected(o, c->path))
		return 0;
	if (c->kind == CHANGE_REFUSED) {
		set(item, VERDICT_REFUSED, "");
		for (size_t i = 0; c->why && c->why[i] && i + 1 < sizeof(item->why); i++)
			item->why[i] = c->why[i] >= ' ' && c->why[i] < 0x7f ? c->why[i] : '?';
		return 0;
	}
	if (review_has_setid(c)) {
		set(item, VERDICT_REFUSED, "a setuid or setgid bit");
		return 0;
	}
	r = compare_with_host(m, c, dir, o->force, item);
	if (r < 0 || item->verdict == VERDICT_ALREADY || item->verdict == VERDICT_REFUSED)
		return r;
	if (o->all_held || c->kind == CHANGE_TOUCHED)
		return 0;
	item->rule = held_find(h, c);
	if (item->rule && named(o, h, c->path))
		item->rule = NULL;
	if (item->rule)
		set(item, VERDICT_HELD, item->rule->why);
	return 0;
}

static bool removes_dir(const struct change *c)
{
	return c->base.type == TYPE_DIR && (c->kind == CHANGE_DELETED || c->type != TYPE_DIR);
}

static bool makes_dir(const struct change *c)
{
	return c->type == TYPE_DIR && (c->kind == CHANGE_ADDED || c->kind == CHANGE_MODIFIED);
}

#define NO_PARENT SIZE_MAX

/* What the entries below one say together. */
struct below {
	size_t parent; /* the entry whose path is the nearest above, or NO_PARENT */
	bool any, wanted;
	bool stays; /* one is neither applied nor is there already */
};

static void link_parents(const struct manifest *m, struct below *b)
{
	for (size_t i = 0; i < m->count; i++) {
		size_t up = i ? i - 1 : NO_PARENT;

		/* Sorted: whatever is above i is the entry before it or above that one. */
		while (up != NO_PARENT && !review_below(m->entries[i].path, m->entries[up].path))
			up = b[up].parent;
		b[i] = (struct below){.parent = up};
	}
}

static bool settled(enum verdict v)
{
	return v == VERDICT_APPLY || v == VERDICT_ALREADY;
}

/* Directories depend on what is below them, and what is below depends on them. Linear in the number
 * of entries: the depth is the box's choice. */
static void settle_directories(const struct manifest *m, struct review_item *items, struct below *b)
{
	link_parents(m, b);
	for (size_t i = m->count; i-- > 0;) {
		const struct change *c = &m->entries[i];
		struct review_item *it = &items[i];
		struct below *up = b[i].parent == NO_PARENT ? NULL : &b[b[i].parent];

		if (removes_dir(c) && b[i].stays && it->verdict == VERDICT_APPLY)
			set(it, VERDICT_SKIP, "something in it stays");
		/* A directory is made for what comes into it, and not for what is held back. */
		if (makes_dir(c) && it->verdict == VERDICT_SKIP && b[i].wanted)
			set(it, VERDICT_APPLY, "");
		if (makes_dir(c) && it->verdict == VERDICT_APPLY && b[i].any && !b[i].wanted)
			set(it, VERDICT_SKIP, "nothing in it is applied");
		if (!up)
			continue;
		up->any = true;
		up->wanted |= b[i].wanted || it->verdict == VERDICT_APPLY;
		up->stays |= b[i].stays || !settled(it->verdict);
	}
	for (size_t i = 0; i < m->count; i++) {
		size_t up = b[i].parent;

		if (up == NO_PARENT || !makes_dir(&m->entries[up]) || settled(items[up].verdict) ||
		    !settled(items[i].verdict))
			continue;
		set(&items[i], items[up].verdict, "the directory it is in is not made");
	}
}

int review_changes(const struct manifest *m, int root_fd, const struct review_options *o,
		   struct review_item **ret, struct pale_err *err)
{
	_cleanup_free_ struct review_item *items = calloc(m->count + 1, sizeof(*items));
	_cleanup_host_dir_ struct host_dir dir = HOST_DIR(root_fd);
	_cleanup_free_ struct below *below = calloc(m->count + 1, sizeof(*below));
	const struct held h = {.manifest = m, .home = o->home, .root_fd = root_fd};

	if (!items || !below)
		return err_nomem(err, "files");
	for (size_t i = 0; i < m->count; i++) {
		int r = judge(m, &m->entries[i], &h, &dir, o, &items[i]);

		if (r == -ENOMEM)
			return err_nomem(err, "files");
		if (r < 0)
			set(&items[i], VERDICT_FAILED, strerror(-r));
	}
	settle_directories(m, items, below);
	*ret = take_ptr(items);
	return 0;
}
