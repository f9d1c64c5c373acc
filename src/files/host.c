/* The host's side: see host.h. Runs in `pale diff` and `pale apply` with the caller's rights. The
 * tree may be changed by others at any moment, also by those who would like a write to land
 * elsewhere: so every path starts at the descriptor of the overlaid directory and goes on by
 * openat2. */
#include "files/host.h"

#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/copy.h"

#define STEP_MAX 4000 /* what one call takes of a path longer than the kernel's limit */

int host_open_root(const struct manifest *m, struct pale_err *err)
{
	_cleanup_close_ int fd = open(m->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno == ENOENT ? PALE_E_NOTFOUND : PALE_E_SYSTEM, "files",
			       errno, "opening %s, which the run had as an overlay",
			       QUOTED(m->root));
	if (st.st_dev != m->root_dev || st.st_ino != m->root_ino)
		return err_set(
			err, PALE_E_CONFLICT, "files", 0,
			"%s is not the directory that the run had as an overlay: it was replaced "
			"meanwhile",
			QUOTED(m->root));
	return take_fd(&fd);
}

void host_dir_done(struct host_dir *d)
{
	if (d->fd != d->root_fd)
		close_fd(&d->fd);
	free(d->path);
	*d = HOST_DIR(d->root_fd);
}

/* A directory beneath root by a path of any length. A descriptor or a negative errno. */
static int open_dir(int root, char *path)
{
	const uint64_t resolve =
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
	_cleanup_close_ int at = -1;
	size_t len = strlen(path);

	for (;;) {
		char *cut = NULL, kept = 0;
		int next;

		if (len > STEP_MAX) {
			cut = path + STEP_MAX;
			while (*cut != '/')
				cut--;
			kept = *cut;
			*cut = '\0';
		}
		next = fd_openat2(at < 0 ? root : at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
				  resolve);
		/* Searchable, though not readable, is enough for what is done in it. */
		if (next == -EACCES)
			next = fd_openat2(at < 0 ? root : at, path,
					  O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, resolve);
		if (cut)
			*cut = kept;
		if (next < 0)
			return next;
		close_fd(&at);
		at = next;
		if (!cut)
			return take_fd(&at);
		len -= (size_t)(cut + 1 - path);
		path = cut + 1;
	}
}

int host_parent(struct host_dir *d, const char *path, bool fresh, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	char *dir;
	int fd;

	*ret_name = slash ? slash + 1 : path;
	if (!fresh && d->path && strlen(d->path) == len && memcmp(d->path, path, len) == 0)
		return d->fd;
	dir = strndup(path, len);
	if (!dir)
		return -ENOMEM;
	fd = len ? open_dir(d->root_fd, dir) : d->root_fd;
	if (fd < 0) {
		free(dir);
		return fd;
	}
	host_dir_done(d);
	d->fd = fd;
	d->path = dir;
	return fd;
}

bool host_matches_base(const struct manifest *m, const struct change *c, const struct stat *st)
{
	const struct change_base *b = &c->base;
	struct change_base now;

	if (!st || b->type == TYPE_NONE)
		return !st && b->type == TYPE_NONE;
	change_base_from_stat(&now, st);
	if (now.type != b->type)
		return false;
	/* What lies in a directory has entries of its own. */
	if (b->type == TYPE_DIR)
		return c->kind != CHANGE_MODE ||
		       (now.ino == b->ino && ((now.mode ^ b->mode) & 01777) == 0);
	return now.dev == b->dev && now.ino == b->ino && now.size == b->size &&
	       now.mode == b->mode && now.mtime_ns == b->mtime_ns && now.ctime_ns == b->ctime_ns &&
	       b->ctime_ns <= m->started_ns;
}

static int same_file(const struct manifest *m, const struct change *c, int parent_fd,
		     const char *name, const struct stat *st)
{
	_cleanup_close_ int fd = -1;
	struct stat now;

	if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size != c->size ||
	    (st->st_mode & 07777) != (c->mode & 0777))
		return 0;
	fd = fd_open_beneath(parent_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -EACCES) { /* its mode says so, and the time was set by us or by nobody */
		struct change_base seen;

		change_base_from_stat(&seen, st);
		return seen.mtime_ns == c->mtime_ns;
	}
	if (fd < 0 || fstat(fd, &now) < 0 || !S_ISREG(now.st_mode) || now.st_size != st->st_size)
		return 0;
	return copy_same(fd, 0, m->contents_fd, (int64_t)c->offset, (int64_t)c->size);
}

static int same_link(const struct change *c, int parent_fd, const char *name, const struct stat *st)
{
	char target[MANIFEST_TARGET_MAX + 1];
	ssize_t n;

	if (!S_ISLNK(st->st_mode) || !c->target)
		return 0;
	n = readlinkat(parent_fd, name, target, sizeof(target));
	return n == (ssize_t)strlen(c->target) && memcmp(target, c->target, (size_t)n) == 0;
}

int host_has_change(const struct manifest *m, const struct change *c, int parent_fd,
		    const char *name, const struct stat *st)
{
	struct change_base now;

	if (c->kind == CHANGE_DELETED || !st)
		return c->kind == CHANGE_DELETED && !st;
	change_base_from_stat(&now, st);
	switch (c->kind) {
	case CHANGE_MODE:
		return now.type == c->type &&
		       ((now.mode ^ c->mode) & (c->type == TYPE_DIR ? 01777u : 07777u)) == 0;
	case CHANGE_TOUCHED: return now.type == c->type && now.mtime_ns == c->mtime_ns;
	case CHANGE_ADDED:
	case CHANGE_MODIFIED:
		if (c->type == TYPE_DIR)
			return now.type == TYPE_DIR;
		return c->type == TYPE_FILE ? same_file(m, c, parent_fd, name, st)
					    : same_link(c, parent_fd, name, st);
	default: return 0;
	}
}
