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

#include "base/fd.h"
#include "base/str.h"
#include "files/copy.h"
#include "files/journal.h"

struct apply {
	const struct manifest *m;
	const struct review_options *o;
	struct review_item *items;
	struct host_dir dir;
	struct journal journal;
	uint64_t temporary; /* random, then counted up */
	bool *removed;	    /* one an entry: its deletion was tried */
};

#define TEMPORARY_SIZE 40

static void temporary_name(struct apply *a, char out[static TEMPORARY_SIZE])
{
	snprintf(out, TEMPORARY_SIZE, ".pale-apply-%016" PRIx64, a->temporary++);
}

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

/* Looks at name; *ret_exists. What is there must be what the run started from. 0, -ESTALE or an
 * errno. */
static int check_base(const struct apply *a, const struct change *c, int parent, const char *name,
		      struct stat *st, bool *ret_exists)
{
	*ret_exists = fstatat(parent, name, st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!*ret_exists && errno != ENOENT)
		return -errno;
	if (host_matches_base(a->m, c, *ret_exists ? st : NULL))
		return 0;
	/* A forced overwrite replaces files and links, never a directory. */
	return a->o->force && (!*ret_exists || !S_ISDIR(st->st_mode)) ? 0 : -ESTALE;
}

/* The same object with the same content, as far as a rename leaves the times alone. */
static bool same_object(const struct stat *x, const struct stat *y)
{
	return x->st_dev == y->st_dev && x->st_ino == y->st_ino && x->st_mode == y->st_mode &&
	       x->st_size == y->st_size && x->st_mtim.tv_sec == y->st_mtim.tv_sec &&
	       x->st_mtim.tv_nsec == y->st_mtim.tv_nsec;
}

/* Some file systems cannot exchange: there the check comes right before the rename. */
static int replace(int parent, const char *temporary, const char *name, const struct stat *before)
{
	struct stat out;

	if (renameat2(parent, temporary, parent, name, RENAME_EXCHANGE) < 0) {
		if (errno != EINVAL)
			return errno == ENOENT ? -ESTALE : -errno;
		if (fstatat(parent, name, &out, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !same_object(&out, before))
			return -ESTALE;
		return renameat(parent, temporary, parent, name) < 0 ? -errno : 0;
	}
	/* The temporary name now is what was there. */
	if (fstatat(parent, temporary, &out, AT_SYMLINK_NOFOLLOW) == 0 && same_object(&out, before))
		return unlinkat(parent, temporary, 0) < 0 ? -errno : 0;
	if (renameat2(parent, temporary, parent, name, RENAME_EXCHANGE) < 0)
		return -errno;
	return -ESTALE;
}

/* Gives the finished object its name. On failure the caller cleans up. */
static int install(struct apply *a, const struct change *c, int parent, const char *temporary,
		   const char *name)
{
	struct stat before, made;
	bool exists;
	int r = check_base(a, c, parent, name, &before, &exists);

	if (r < 0)
		return r;
	if (exists && S_ISDIR(before.st_mode)) {
		if (unlinkat(parent, name, AT_REMOVEDIR) < 0)
			return errno == EEXIST ? -ENOTEMPTY : -errno;
		exists = false;
	}
	if (!exists) {
		if (renameat2(parent, temporary, parent, name, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EINVAL)
			return errno == EEXIST ? -ESTALE : -errno;
		/* No such flag on this file system: a link never replaces. */
		if (linkat(parent, temporary, parent, name, 0) < 0)
			return errno == EEXIST ? -ESTALE : -errno;
		return unlinkat(parent, temporary, 0) < 0 ? -errno : 0;
	}
	if (fstatat(parent, temporary, &made, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	r = journal_write(&a->journal, JOURNAL_SWAPPING, c->path, temporary, made.st_ino);
	return r < 0 ? r : replace(parent, temporary, name, &before);
}

/* Who shall own what is made: the caller; for root the owner of what is replaced, or of the
 * directory, so that a tree stays its user's. */
static void owner_for(int parent, const char *name, uid_t *ret_uid, gid_t *ret_gid)
{
	struct stat st;

	*ret_uid = (uid_t)-1;
	*ret_gid = (gid_t)-1;
	if (geteuid() != 0)
		return;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && fstat(parent, &st) < 0)
		return;
	*ret_uid = st.st_uid;
	*ret_gid = st.st_gid;
}

static void times_of(const struct change *c, struct timespec out[static 2])
{
	int64_t s = c->mtime_ns / 1000000000, ns = c->mtime_ns % 1000000000;

	if (ns < 0) {
		ns += 1000000000;
		s--;
	}
	out[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
	out[1] = (struct timespec){.tv_sec = s, .tv_nsec = ns};
}

static int make_file(struct apply *a, const struct change *c, int parent, const char *temporary,
		     const char *name)
{
	_cleanup_close_ int fd =
		fd_open_beneath(parent, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
	struct timespec times[2];
	int64_t n;
	uid_t uid;
	gid_t gid;

	if (fd < 0)
		return fd;
	n = copy_range(a->m->contents_fd, (int64_t)c->offset, fd, 0, (int64_t)c->size, INT64_MAX,
		       NULL);
	if (n < 0)
		return n == -ENODATA ? -EINVAL : (int)n;
	if (n < (int64_t)c->size && ftruncate(fd, (off_t)c->size) < 0)
		return -errno;
	owner_for(parent, name, &uid, &gid);
	if (uid != (uid_t)-1 && fchown(fd, uid, gid) < 0)
		return -errno;
	times_of(c, times);
	if (fchmod(fd, c->mode & 0777) < 0 || futimens(fd, times) < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

static int make_symlink(const struct change *c, int parent, const char *temporary, const char *name)
{
	struct timespec times[2];
	uid_t uid;
	gid_t gid;

	if (symlinkat(c->target, parent, temporary) < 0)
		return -errno;
	owner_for(parent, name, &uid, &gid);
	if (uid != (uid_t)-1 && fchownat(parent, temporary, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	times_of(c, times);
	return utimensat(parent, temporary, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int make_dir(const struct change *c, int parent, const char *temporary, const char *name)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	uid_t uid;
	gid_t gid;

	if (mkdirat(parent, temporary, 0700) < 0)
		return -errno;
	fd = fd_open_beneath(parent, temporary, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fd < 0 ? fd : -errno;
	owner_for(parent, name, &uid, &gid);
	if (uid != (uid_t)-1 && fchown(fd, uid, gid) < 0)
		return -errno;
	/* Writable for us until all is in it; the setgid bit is inherited, not asked for. */
	return fchmod(fd, (c->mode & 01777) | 0700 | (st.st_mode & S_ISGID)) < 0 ? -errno : 0;
}

/* Undoes the step at which the last apply was killed. */
static int clean(struct apply *a)
{
	struct journal_record rec = {0};
	struct stat temporary, st;
	const char *name;
	int r = journal_read(&a->journal, &rec), parent;

	if (r < 0 || rec.state == JOURNAL_IDLE)
		return r;
	parent = host_parent(&a->dir, rec.path, true, &name);
	if (parent >= 0 && fstatat(parent, rec.temporary, &temporary, AT_SYMLINK_NOFOLLOW) == 0) {
		if (rec.state == JOURNAL_MAKING || temporary.st_ino == rec.ino) {
			if (unlinkat(parent, rec.temporary,
				     S_ISDIR(temporary.st_mode) ? AT_REMOVEDIR : 0) < 0)
				r = -errno;
		} else if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			/* Taken out to be deleted: back it goes, the next apply decides anew. */
			if (renameat2(parent, rec.temporary, parent, name, RENAME_NOREPLACE) < 0)
				r = -errno;
		} else if (renameat2(parent, rec.temporary, parent, name, RENAME_EXCHANGE) < 0) {
			r = -errno;
		} else if (st.st_ino != rec.ino) {
			/* Not ours and not the old one: a third party's; it gets its place back. */
			if (renameat2(parent, rec.temporary, parent, name, RENAME_EXCHANGE) < 0)
				r = -errno;
		} else if (unlinkat(parent, rec.temporary, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) <
			   0) {
			r = -errno;
		}
	}
	journal_record_done(&rec);
	return r < 0 ? r : journal_write(&a->journal, JOURNAL_IDLE, "-", "", 0);
}

/* Makes the new object under a temporary name and installs it. */
static int put(struct apply *a, const struct change *c)
{
	char temporary[TEMPORARY_SIZE];
	const char *name;
	int parent = host_parent(&a->dir, c->path, true, &name), r;
	struct stat st;

	if (parent < 0)
		return parent;
	/* A directory that is there already is as good as made. */
	if (c->type == TYPE_DIR && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode))
		return 0;
	temporary_name(a, temporary);
	r = journal_write(&a->journal, JOURNAL_MAKING, c->path, temporary, 0);
	if (r < 0)
		return r;
	r = c->type == TYPE_FILE  ? make_file(a, c, parent, temporary, name)
	    : c->type == TYPE_DIR ? make_dir(c, parent, temporary, name)
				  : make_symlink(c, parent, temporary, name);
	if (r == 0)
		r = install(a, c, parent, temporary, name);
	/* By the journal: after a failed exchange the temporary name may be the host's own file. */
	if (r < 0 && clean(a) < 0)
		return -EIO;
	return r;
}

/* A descriptor that names the object only, after it was checked. */
static int open_checked(struct apply *a, const struct change *c, struct stat *st,
			char proc[static 32])
{
	const char *name;
	int parent = host_parent(&a->dir, c->path, true, &name);
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
	times_of(c, times);
	return utimensat(AT_FDCWD, proc, times, 0) < 0 ? -errno : 0;
}

static int remove_entry(struct apply *a, const struct change *c)
{
	char temporary[TEMPORARY_SIZE];
	const char *name;
	int parent = host_parent(&a->dir, c->path, true, &name), r;
	struct stat before, out;
	bool exists;

	if (parent == -ENOENT)
		return 0;
	if (parent < 0)
		return parent;
	r = check_base(a, c, parent, name, &before, &exists);
	if (r < 0 || !exists)
		return r;
	if (S_ISDIR(before.st_mode)) {
		if (unlinkat(parent, name, AT_REMOVEDIR) < 0)
			return errno == EEXIST ? -ENOTEMPTY : -errno;
		return 0;
	}
	/* Out of its place first, then looked at, then gone. */
	temporary_name(a, temporary);
	r = journal_write(&a->journal, JOURNAL_SWAPPING, c->path, temporary, 0);
	if (r < 0)
		return r;
	if (renameat2(parent, name, parent, temporary, RENAME_NOREPLACE) < 0) {
		if (errno != EINVAL)
			return errno == ENOENT ? -ESTALE : -errno;
		return unlinkat(parent, name, 0) < 0 ? -errno : 0;
	}
	if (fstatat(parent, temporary, &out, AT_SYMLINK_NOFOLLOW) == 0 &&
	    same_object(&out, &before))
		return unlinkat(parent, temporary, 0) < 0 ? -errno : 0;
	return renameat2(parent, temporary, parent, name, RENAME_NOREPLACE) < 0 ? -errno : -ESTALE;
}

/* ---------------------------------------------------------------- all entries in order */

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

/* Deletions in [from, to), the deepest first. */
static int remove_range(struct apply *a, size_t from, size_t to, struct pale_err *err)
{
	int r = 0;

	for (size_t i = to; r == 0 && i-- > from;) {
		if (a->items[i].verdict != VERDICT_APPLY || a->removed[i] ||
		    a->m->entries[i].kind != CHANGE_DELETED)
			continue;
		a->removed[i] = true;
		r = done(a, i, remove_entry(a, &a->m->entries[i]), err);
	}
	return r;
}

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
			r = done(a, i, put(a, c), err);
		else if (c->type != TYPE_DIR)
			r = done(a, i, adjust(a, c), err);
	}
	return r;
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
		parent = host_parent(&a->dir, c->path, false, &name);
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
		times_of(c, times);
		(void)utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);
	}
	return r;
}

/* Before anything is written: whether it can fit. Sparse files are not counted. */
static int check_space(const struct apply *a, struct pale_err *err)
{
	uint64_t want = 0, have;
	struct statvfs fs;

	if (fstatvfs(a->dir.root_fd, &fs) < 0)
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

static void apply_done(struct apply *a)
{
	host_dir_done(&a->dir);
	journal_close(&a->journal);
	free(a->removed);
}

int changes_clean(const struct manifest *m, int changes_fd, int root_fd, struct pale_err *err)
{
	_cleanup_(apply_done) struct apply a = {
		.m = m, .dir = HOST_DIR(root_fd), .journal = {.fd = -1}};
	int r = journal_open(changes_fd, &a.journal, err);

	if (r < 0)
		return r;
	r = clean(&a);
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

int changes_apply(const struct manifest *m, int changes_fd, int root_fd,
		  const struct review_options *o, struct review_item *items, struct pale_err *err)
{
	_cleanup_(apply_done) struct apply a = {
		.m = m, .o = o, .items = items, .dir = HOST_DIR(root_fd), .journal = {.fd = -1}};
	int r = check_space(&a, err);

	if (r < 0)
		return r;
	a.removed = calloc(m->count + 1, sizeof(*a.removed));
	if (!a.removed)
		return err_nomem(err, "files");
	if (getrandom(&a.temporary, sizeof(a.temporary), 0) != sizeof(a.temporary))
		return err_set(err, PALE_E_SYSTEM, "files", errno, "getting a random number");
	r = journal_open(changes_fd, &a.journal, err);
	if (r == 0)
		r = write_all(&a, err);
	if (r == 0)
		r = remove_range(&a, 0, m->count, err);
	if (r == 0)
		r = finish_dirs(&a, err);
	if (r == 0 && journal_write(&a.journal, JOURNAL_IDLE, "-", "", 0) < 0)
		r = err_set(err, PALE_E_SYSTEM, "files", errno, "writing the journal");
	/* The names: files were brought to disk one by one. */
	if (r == 0 && syncfs(root_fd) < 0)
		r = err_set(err, PALE_E_SYSTEM, "files", errno, "bringing %s to disk",
			    QUOTED(m->root));
	return r;
}
