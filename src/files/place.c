/* One object into its place: see place.h. Runs in `pale apply` with the caller's rights; what it
 * makes is hostile, and the directory is one that others may write to. */
#include "files/place.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "files/copy.h"

static void temporary_name(uint64_t start, size_t i, char out[static PLACE_TEMPORARY])
{
	snprintf(out, PLACE_TEMPORARY, ".pale-apply-%016" PRIx64, start + i);
}

/* Entry i has, or may have, a temporary name from now on. */
static int note(struct place *p, enum journal_state state, size_t i, uint64_t ino)
{
	struct journal_record *r = &p->rec;

	if (r->from == r->to)
		r->from = r->to = i;
	r->from = i < r->from ? i : r->from;
	r->to = i >= r->to ? i + 1 : r->to;
	r->state = state;
	r->entry = i;
	r->ino = ino;
	return journal_write(&p->journal, r);
}

/* Looks at name; *ret_exists. What is there must be what the run started from. 0, -ESTALE or an
 * errno. */
static int check_base(const struct place *p, const struct change *c, int parent, const char *name,
		      struct stat *st, bool *ret_exists)
{
	*ret_exists = fstatat(parent, name, st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!*ret_exists && errno != ENOENT)
		return -errno;
	if (host_matches_base(p->m, c, *ret_exists ? st : NULL))
		return 0;
	/* A forced overwrite replaces files and links, never a directory. */
	return p->force && (!*ret_exists || !S_ISDIR(st->st_mode)) ? 0 : -ESTALE;
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
int place_install(struct place *p, size_t i, int parent, const char *name)
{
	const struct change *c = &p->m->entries[i];
	char temporary[PLACE_TEMPORARY];
	struct stat before, made;
	bool exists;
	int r = check_base(p, c, parent, name, &before, &exists);

	if (r < 0)
		return r;
	temporary_name(p->rec.start, i, temporary);
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
	r = note(p, JOURNAL_SWAPPING, i, made.st_ino);
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

static int make_file(const struct place *p, const struct change *c, int parent,
		     const char *temporary, const char *name, bool sync)
{
	_cleanup_close_ int fd =
		fd_open_beneath(parent, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
	struct timespec times[2];
	int64_t n;
	uid_t uid;
	gid_t gid;

	if (fd < 0)
		return fd;
	n = copy_range(p->m->contents_fd, (int64_t)c->offset, fd, 0, (int64_t)c->size, INT64_MAX,
		       NULL);
	if (n < 0)
		return n == -ENODATA ? -EINVAL : (int)n;
	if (n < (int64_t)c->size && ftruncate(fd, (off_t)c->size) < 0)
		return -errno;
	owner_for(parent, name, &uid, &gid);
	if (uid != (uid_t)-1 && fchown(fd, uid, gid) < 0)
		return -errno;
	clock_mtime_of(c->mtime_ns, times);
	if (fchmod(fd, c->mode & 0777) < 0 || futimens(fd, times) < 0 || (sync && fsync(fd) < 0))
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
	clock_mtime_of(c->mtime_ns, times);
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

int place_make(struct place *p, size_t i, int parent, const char *name, bool sync)
{
	const struct change *c = &p->m->entries[i];
	char temporary[PLACE_TEMPORARY];
	int r = note(p, JOURNAL_MAKING, i, 0);

	if (r < 0)
		return r;
	temporary_name(p->rec.start, i, temporary);
	return c->type == TYPE_FILE  ? make_file(p, c, parent, temporary, name, sync)
	       : c->type == TYPE_DIR ? make_dir(c, parent, temporary, name)
				     : make_symlink(c, parent, temporary, name);
}

int place_remove(struct place *p, size_t i, int parent, const char *name)
{
	const struct change *c = &p->m->entries[i];
	char temporary[PLACE_TEMPORARY];
	struct stat before, out;
	bool exists;
	int r = check_base(p, c, parent, name, &before, &exists);

	if (r < 0 || !exists)
		return r;
	if (S_ISDIR(before.st_mode)) {
		if (unlinkat(parent, name, AT_REMOVEDIR) < 0)
			return errno == EEXIST ? -ENOTEMPTY : -errno;
		return 0;
	}
	/* Out of its place first, then looked at, then gone. */
	temporary_name(p->rec.start, i, temporary);
	r = note(p, JOURNAL_SWAPPING, i, 0);
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

int place_undo(struct place *p, size_t i, int parent, const char *name)
{
	bool ours = p->rec.state != JOURNAL_SWAPPING || p->rec.entry != i;
	char temporary[PLACE_TEMPORARY];
	struct stat st, now;

	temporary_name(p->rec.start, i, temporary);
	if (fstatat(parent, temporary, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!ours && st.st_ino != p->rec.ino) {
		if (fstatat(parent, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
			/* Taken out to be deleted: back it goes, the next apply decides anew. */
			return renameat2(parent, temporary, parent, name, RENAME_NOREPLACE) < 0
				       ? -errno
				       : 0;
		/* What took its place is a third party's: then nothing is ours to remove. */
		if (now.st_ino != p->rec.ino)
			return 0;
		if (renameat2(parent, temporary, parent, name, RENAME_EXCHANGE) < 0)
			return -errno;
		st = now;
	}
	return unlinkat(parent, temporary, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
}

int place_settle(struct place *p)
{
	p->rec.state = JOURNAL_IDLE;
	p->rec.from = p->rec.to = p->rec.entry = 0;
	return journal_write(&p->journal, &p->rec);
}

int place_clean(struct place *p)
{
	int r = journal_read(&p->journal, &p->rec);

	if (r < 0 || p->rec.state == JOURNAL_IDLE)
		return r;
	if (p->rec.to > p->m->count || p->rec.from > p->rec.to)
		return -EINVAL;
	for (size_t i = p->rec.from; i < p->rec.to; i++) {
		const char *name;
		int parent = host_parent(&p->dir, p->m->entries[i].path, true, &name);

		r = parent < 0 ? 0 : place_undo(p, i, parent, name);
		if (r < 0)
			return r;
	}
	return place_settle(p);
}

void place_done(struct place *p)
{
	host_dir_done(&p->dir);
	journal_close(&p->journal);
}
