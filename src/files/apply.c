/* Applying changes: see apply.h.
 *
 * Runs in `pale apply` with the caller's rights, over a tree that others may change at any moment,
 * some of them on purpose. What it writes is hostile, where it writes is decided here: from the
 * descriptor of the overlaid directory, through openat2 that follows nothing and crosses no mount,
 * into the directory that is then held open; and what stands in the place is verified on the object
 * that the rename took out, not on a name that was looked at before.
 *
 * Order: directories and files by path, deletions from the deepest up, then the modes and times of
 * directories, which what came before would change again. */
#include "files/apply.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/place.h"

/* Files are made in batches, so that one call brings a whole batch to disk before any of it takes
 * its name: a change set of 20,000 files is not 20,000 waits for the disk. */
#define BATCH 256
/* Up to so many files altogether each waits for itself, and the rest of the machine for nothing. */
#define FEW   8

struct pending {
	size_t entry;
	int parent; /* open since it was made */
};

struct apply {
	const struct manifest *m;
	struct review_item *items;
	struct place place;
	struct pending pending[BATCH];
	size_t npending;
	bool few;
	bool failed;   /* nothing more is put in place */
	bool *removed; /* one an entry: its deletion was tried */
};

static bool fatal(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO ||
	       error == ENOMEM;
}

/* Codes of a single entry: -ESTALE, the host changed; else the errno. */
static void record(struct review_item *item, int r)
{
	const char *why = r == -ESTALE	    ? "it changed on the host meanwhile"
			  : r == -ENOTEMPTY ? "it holds files that the run did not see"
			  : r == -ELOOP || r == -ENOTDIR
				  ? "the directory is something else on the host now"
			  : r == -ENOENT ? "the directory is gone on the host"
			  : r == -EXDEV	 ? "something is mounted there on the host"
			  : r == -EMLINK ? "it has another name (a hard link) on the host"
					 : strerror(-r);

	item->verdict =
		r == -ESTALE || r == -ENOTEMPTY || r == -ELOOP || r == -ENOTDIR || r == -ENOENT
			? VERDICT_CONFLICT
		: r == -EXDEV || r == -EMLINK ? VERDICT_REFUSED
					      : VERDICT_FAILED;
	snprintf(item->why, sizeof(item->why), "%s", why);
}

/* A descriptor that names the object only, after it was checked. */
static int open_checked(struct apply *a, const struct change *c, struct stat *st,
			char proc[static 32])
{
	const char *name;
	int parent = host_parent(&a->place.dir, c->path, true, &name);
	int fd = parent < 0 ? parent : fd_open_beneath(parent, name, O_PATH, 0);

	if (fd < 0)
		return fd == -ENOENT && parent >= 0 ? -ESTALE : fd;
	if (fstat(fd, st) < 0 || !host_matches_base(a->m, c, st)) {
		close(fd);
		return -ESTALE;
	}
	snprintf(proc, 32, "/proc/self/fd/%d", fd);
	return fd;
}

/* Mode and times of an object that stays. */
static int adjust(struct apply *a, const struct change *c)
{
	char proc[32];
	struct stat st;
	struct timespec times[2];
	_cleanup_close_ int fd = open_checked(a, c, &st, proc);

	if (fd < 0)
		return fd;
	if (!S_ISDIR(st.st_mode) && st.st_nlink > 1)
		return -EMLINK;
	if (c->kind == CHANGE_MODE && S_ISDIR(st.st_mode))
		return chmod(proc, (c->mode & 01777) | (st.st_mode & 06000)) < 0 ? -errno : 0;
	if (c->kind == CHANGE_MODE && chmod(proc, c->mode & 0777) < 0)
		return -errno;
	clock_mtime_of(c->mtime_ns, times);
	return utimensat(AT_FDCWD, proc, times, 0) < 0 ? -errno : 0;
}

/* ---------------------------------------------------------------- single entries */

/* What happened to one entry; a code only if nothing more can be done. */
static int done(struct apply *a, size_t i, int r, struct pale_err *err)
{
	if (r == 0)
		return 0;
	record(&a->items[i], r);
	if (!fatal(-r))
		return 0;
	return err_set(err, PALE_E_SYSTEM, "files", -r,
		       "applying %s (what was applied before it stays; apply again to go on)",
		       QUOTED(a->m->entries[i].path));
}

static int remove_entry(struct apply *a, size_t i)
{
	const char *name;
	int parent = host_parent(&a->place.dir, a->m->entries[i].path, true, &name), r, u;

	if (parent < 0)
		return parent == -ENOENT ? 0 : parent;
	r = place_remove(&a->place, i, parent, name);
	u = r < 0 ? place_undo(&a->place, i, parent, name) : 0;
	if (a->npending == 0)
		place_forget(&a->place);
	return u < 0 ? -EIO : r;
}

/* Deletions in [from, to), the deepest first. */
static int remove_range(struct apply *a, size_t from, size_t to, struct pale_err *err)
{
	int r = 0;

	for (size_t i = to; r == 0 && i-- > from;) {
		if (a->items[i].verdict != VERDICT_APPLY || a->removed[i] ||
		    a->m->entries[i].kind != CHANGE_DELETED)
			continue;
		a->removed[i] = true;
		r = done(a, i, remove_entry(a, i), err);
	}
	return r;
}

/* ---------------------------------------------------------------- batches of files */

static int same_directory(int x, int y)
{
	struct stat a, b;

	if (fstat(x, &a) < 0 || fstat(y, &b) < 0)
		return -errno;
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino ? 0 : -ENOTDIR;
}

/* Gives one file of the batch its name, if its directory still is where it was. */
static int install(struct apply *a, const struct pending *p)
{
	const char *name;
	int parent = host_parent(&a->place.dir, a->m->entries[p->entry].path, true, &name);
	int r = parent < 0 ? parent : same_directory(parent, p->parent), u;

	if (r == 0)
		r = place_install(&a->place, p->entry, p->parent, name);
	u = r < 0 ? place_undo(&a->place, p->entry, p->parent, name) : 0;
	return u < 0 ? -EIO : r;
}

/* Brings the batch to disk and puts it in place. After a failure that ends all, what is left of it
 * is removed. */
static int commit(struct apply *a, struct pale_err *err)
{
	int r = a->failed ? -PALE_E_SYSTEM : 0;

	if (r == 0 && a->npending && !a->few && syncfs(a->place.dir.root_fd) < 0)
		r = err_set(err, PALE_E_SYSTEM, "files", errno, "bringing %s to disk",
			    QUOTED(a->m->root));
	for (size_t k = 0; k < a->npending; k++) {
		struct pending *p = &a->pending[k];

		if (r == 0) {
			r = done(a, p->entry, install(a, p), err);
		} else {
			const char *path = a->m->entries[p->entry].path;
			const char *slash = strrchr(path, '/');

			record(&a->items[p->entry], -ECANCELED);
			(void)!place_undo(&a->place, p->entry, p->parent, slash ? slash + 1 : path);
		}
		close_fd(&p->parent);
	}
	a->npending = 0;
	return r;
}

/* The same, also when something else failed before: r is that. */
static int commit_after(struct apply *a, int r, struct pale_err *err)
{
	struct pale_err later;
	int c;

	a->failed = r < 0;
	c = commit(a, r < 0 ? &later : err);
	place_forget(&a->place);
	return r < 0 ? r : c;
}

/* Makes the new object. A file takes its name with its batch, anything else at once. */
static int put(struct apply *a, size_t i)
{
	const struct change *c = &a->m->entries[i];
	const char *name;
	int parent = host_parent(&a->place.dir, c->path, true, &name), r, u;
	struct pending p = {.entry = i, .parent = -1};
	struct stat st;

	if (parent < 0)
		return parent;
	/* A directory that is there already is as good as made. */
	if (c->type == TYPE_DIR && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode))
		return 0;
	if (c->type == TYPE_FILE) {
		p.parent = fcntl(parent, F_DUPFD_CLOEXEC, 3);
		if (p.parent < 0)
			return -errno;
	}
	r = place_make(&a->place, i, parent, name, a->few);
	if (r == 0 && c->type == TYPE_FILE) {
		a->pending[a->npending++] = p;
		return 0;
	}
	close_fd(&p.parent);
	if (r == 0)
		r = place_install(&a->place, i, parent, name);
	u = r < 0 ? place_undo(&a->place, i, parent, name) : 0;
	return u < 0 ? -EIO : r;
}

/* ---------------------------------------------------------------- all of it */

static int write_all(struct apply *a, struct pale_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->m->count; i++) {
		const struct change *c = &a->m->entries[i];
		size_t end = i + 1;

		if (a->items[i].verdict != VERDICT_APPLY || c->kind == CHANGE_DELETED)
			continue;
		/* Something else takes the place of a directory: what was in it goes first. */
		if (c->base.type == TYPE_DIR && c->type != TYPE_DIR) {
			while (end < a->m->count && review_below(a->m->entries[end].path, c->path))
				end++;
			r = remove_range(a, i + 1, end, err);
			if (r < 0)
				return r;
		}
		if (c->kind == CHANGE_ADDED || c->kind == CHANGE_MODIFIED)
			r = done(a, i, put(a, i), err);
		else if (c->type != TYPE_DIR)
			r = done(a, i, adjust(a, c), err);
		if (a->npending == 0)
			place_forget(&a->place);
		else if (r < 0 || a->few || a->npending == BATCH)
			r = commit_after(a, r, err);
	}
	return commit_after(a, r, err);
}

/* Modes that forbid writing, and times, once nothing more is written into a directory. */
static int finish_dirs(struct apply *a, struct pale_err *err)
{
	int r = 0;

	for (size_t i = a->m->count; r == 0 && i-- > 0;) {
		const struct change *c = &a->m->entries[i];
		struct timespec times[2];
		const char *name;
		int parent;

		if (a->items[i].verdict != VERDICT_APPLY || c->type != TYPE_DIR ||
		    c->kind == CHANGE_DELETED)
			continue;
		if (c->kind == CHANGE_MODE) {
			r = done(a, i, adjust(a, c), err);
			continue;
		}
		parent = host_parent(&a->place.dir, c->path, false, &name);
		if (parent < 0)
			continue;
		if ((c->mode & 0700) != 0700) {
			_cleanup_close_ int fd =
				fd_open_beneath(parent, name, O_RDONLY | O_DIRECTORY, 0);
			struct stat st;

			if (fd >= 0 && fstat(fd, &st) == 0)
				r = done(a, i,
					 fchmod(fd, (c->mode & 01777) | (st.st_mode & S_ISGID)) < 0
						 ? -errno
						 : 0,
					 err);
		}
		clock_mtime_of(c->mtime_ns, times);
		(void)utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);
	}
	return r;
}

/* Before anything is written: whether it can fit. Sparse files are not counted. */
static int check_space(const struct apply *a, struct pale_err *err)
{
	uint64_t want = 0, have;
	struct statvfs fs;

	if (fstatvfs(a->place.dir.root_fd, &fs) < 0)
		return err_set(err, PALE_E_SYSTEM, "files", errno,
			       "asking for the free space of %s", QUOTED(a->m->root));
	for (size_t i = 0; i < a->m->count; i++)
		if (a->items[i].verdict == VERDICT_APPLY && a->m->entries[i].has_sha256 &&
		    __builtin_add_overflow(want, a->m->entries[i].size, &want))
			want = UINT64_MAX;
	have = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (want > have)
		return err_set(err, PALE_E_SYSTEM, "files", ENOSPC,
			       "the changes need %" PRIu64 " bytes and %s has %" PRIu64 " free",
			       want, QUOTED(a->m->root), have);
	return 0;
}

static void apply_free(struct apply **a)
{
	if (!*a)
		return;
	place_done(&(*a)->place);
	free((*a)->removed);
	free(*a);
}

static void place_init(struct place *p, const struct manifest *m, int root_fd)
{
	*p = (struct place){.m = m, .dir = HOST_DIR(root_fd), .journal = {.fd = -1}};
}

int changes_clean(const struct manifest *m, int changes_fd, int root_fd, struct pale_err *err)
{
	_cleanup_(place_done) struct place p;
	int r;

	place_init(&p, m, root_fd);
	r = journal_open(changes_fd, &p.journal, err);
	if (r < 0)
		return r;
	r = place_clean(&p);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -r,
			       "cleaning up after an apply that was cut short in %s",
			       QUOTED(m->root));
	return 0;
}

int changes_lock(int changes_fd, struct pale_err *err)
{
	if (flock(changes_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return err_set(err, PALE_E_CONFLICT, "files", 0,
			       "another command is at work on these changes");
	return err_set(err, PALE_E_SYSTEM, "files", errno, "locking the changes");
}

static size_t count_files(const struct apply *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->m->count; i++)
		n += a->items[i].verdict == VERDICT_APPLY && a->m->entries[i].type == TYPE_FILE;
	return n;
}

int changes_apply(const struct manifest *m, int changes_fd, int root_fd,
		  const struct review_options *o, struct review_item *items, struct pale_err *err)
{
	_cleanup_(apply_free) struct apply *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return err_nomem(err, "files");
	a->m = m;
	a->items = items;
	place_init(&a->place, m, root_fd);
	a->place.force = o->force;
	a->few = count_files(a) <= FEW;
	a->removed = calloc(m->count + 1, sizeof(*a->removed));
	if (!a->removed)
		return err_nomem(err, "files");
	if (getrandom(&a->place.rec.start, sizeof(a->place.rec.start), 0) !=
	    sizeof(a->place.rec.start))
		return err_set(err, PALE_E_SYSTEM, "files", errno, "getting a random number");
	r = check_space(a, err);
	if (r == 0)
		r = journal_open(changes_fd, &a->place.journal, err);
	if (r == 0)
		r = write_all(a, err);
	if (r == 0)
		r = remove_range(a, 0, m->count, err);
	if (r == 0)
		r = finish_dirs(a, err);
	if (r == 0 && place_settle(&a->place) < 0)
		r = err_set(err, PALE_E_SYSTEM, "files", errno, "writing the journal");
	/* The names, and the deletions. */
	if (r == 0 && syncfs(root_fd) < 0)
		r = err_set(err, PALE_E_SYSTEM, "files", errno, "bringing %s to disk",
			    QUOTED(m->root));
	return r;
}
