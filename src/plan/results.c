/* What a run leaves, and where it goes: see layout_impl.h. Runs in the supervisor while it plans,
 * with the caller's rights; the path is the caller's own. Collecting (src/files) trusts nothing
 * that was found here: it opens the path again, without links. */
#include "layout_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

#define STAGE "plan"

static int fail(struct pale_err *err, const char *where, const char *path, int sys, const char *why)
{
	return err_set(err, PALE_E_POLICY, STAGE, sys, "%s: %s, where the results are to go, %s",
		       where ? where : "policy", QUOTED(path), why);
}

/* A directory that the caller may write to. */
static int check_dir(const char *dir, const char *where, const char *path, struct pale_err *err)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return fail(err, where, path, errno, "cannot be looked at");
	if (!S_ISDIR(st.st_mode))
		return fail(err, where, path, 0, "is no directory");
	if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) < 0)
		return fail(err, where, path, errno, "cannot be written to");
	return 0;
}

/* The host directory that `collect` names, without links, so that links which come into it while
 * the box runs are noticed. Its last part may be missing. The caller frees *ret. */
static int find_destination(const char *path, const char *where, char **ret, struct pale_err *err)
{
	_cleanup_free_ char *real = realpath(path, NULL), *parent = NULL;
	const char *slash = strrchr(path, '/');
	struct stat st;
	int missing = errno, r;

	*ret = NULL;
	if (real) {
		r = check_dir(real, where, path, err);
		if (r == 0)
			*ret = take_ptr(real);
		return r;
	}
	if (missing != ENOENT || !slash || !slash[1])
		return fail(err, where, path, missing, "cannot be opened");
	if (lstat(path, &st) == 0)
		return fail(err, where, path, 0, "is a link to what is not there");
	parent = slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
	if (!parent)
		return err_nomem(err, STAGE);
	real = realpath(parent, NULL);
	if (!real)
		return fail(err, where, path, errno,
			    "is in a directory that is not there; make it");
	r = check_dir(real, where, path, err);
	if (r == 0 && asprintf(ret, "%s%s", strcmp(real, "/") == 0 ? "" : real, slash) < 0) {
		*ret = NULL;
		r = err_nomem(err, STAGE);
	}
	return r;
}

/* What lies in the collected directory below a mount is ours, not a result. */
static int note_mounts(const struct layout *l, const struct place *in, struct plan_collect *c)
{
	size_t n = 0;

	c->mounts = calloc(l->n + 1, sizeof(*c->mounts));
	for (size_t i = 0; c->mounts && i < l->n; i++) {
		if (l->places[i].in != in)
			continue;
		c->mounts[n] = strdup(l->places[i].path + strlen(in->path) + 1);
		if (!c->mounts[n++])
			return -ENOMEM;
	}
	return c->mounts ? 0 : -ENOMEM;
}

static int note_destination(const struct plan *p, const struct place *place, struct plan_collect *c,
			    struct pale_err *err)
{
	/* Inside another one, which is collected first, it may be made by that. */
	for (size_t i = 0; i + 1 < p->ncollect; i++) {
		if (strcmp(place->collect, p->collect[i].dest) == 0 ||
		    !place_within(place->collect, p->collect[i].dest))
			continue;
		c->dest = strdup(place->collect);
		return c->dest ? 0 : err_nomem(err, STAGE);
	}
	return find_destination(place->collect, place->where, &c->dest, err);
}

/* Only for an ordinary user, who can map no id but the own one. A look, not a search: a tree may be
 * large. */
static unsigned count_foreign(const struct plan *p, const char *root)
{
	DIR *d = p->user_range ? NULL : opendir(root);
	unsigned n = 0;
	struct dirent *e;
	struct stat st;

	for (int i = 0; d && i < 64 && (e = readdir(d)); i++)
		n += strcmp(e->d_name, "..") != 0 &&
		     fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		     (st.st_uid != p->host.uid || st.st_gid != p->host.gid);
	if (d)
		closedir(d);
	return n;
}

int layout_results(struct layout *l, struct pale_err *err)
{
	struct plan *p = l->plan;
	int r;

	p->collect = calloc(l->n + 1, sizeof(*p->collect));
	p->overlays = calloc(l->n + 1, sizeof(*p->overlays));
	if (!p->collect || !p->overlays)
		return err_nomem(err, STAGE);
	for (size_t i = 0; i < l->n; i++) {
		const struct place *place = &l->places[i];

		if (place->kind == PLACE_OVERLAY) {
			struct plan_overlay *o = &p->overlays[p->noverlays++];

			o->index = place->index;
			o->path = strdup(place->path);
			o->root = strdup(place->source);
			if (!o->path || !o->root)
				return err_nomem(err, STAGE);
			o->foreign = count_foreign(p, o->root);
		} else if (place->collect) {
			struct plan_collect *c = &p->collect[p->ncollect++];

			r = note_destination(p, place, c, err);
			if (r < 0)
				return r;
			c->path = strdup(place->path);
			c->name = place->kind == PLACE_SHARED ? strdup(place->name) : NULL;
			c->size_bytes = place->kind == PLACE_SIZED ? place->size_bytes
								   : p->limits.disk_bytes;
			if (!c->path || (place->kind == PLACE_SHARED && !c->name) ||
			    note_mounts(l, place, c) < 0)
				return err_nomem(err, STAGE);
		}
	}
	return 0;
}
