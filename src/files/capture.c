/* Capture of an overlay's changes: see changes.h and manifest.h.
 *
 * The supervisor calls changes_capture() when everything in the box is dead. The reading happens in
 * a confined child (worker.h): the upper directory is hostile in every name, mode, attribute and
 * byte. The child walks the upper directory and, in step with it, the host's directory that was
 * overlaid, so that an entry is compared with what it covers by one stat; its time follows the
 * changes. What a whiteout or an opaque directory removed is listed entry by entry from the host's
 * side, so that whoever reads the manifest needs no overlay rules.
 *
 * The child writes to descriptors that are open already: the manifest and the contents. meta.json,
 * which says which host directory all this belongs to, is the supervisor's own. */
#include "files/changes.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/copy.h"
#include "files/manifest.h"
#include "files/walk.h"
#include "files/worker.h"

/* Beyond this a sparse file would not fit where the contents are kept. */
#define CONTENTS_MAX ((int64_t)1 << 43)
#define ALIGN	     4096

/* walk_level.flags */
#define LEVEL_OPAQUE  1u /* upper: the host's directory does not shine through */
#define LEVEL_DELETED 2u /* a directory of the host: all in it was removed */
#define LEVEL_REST    4u /* the same, but for the names of the level below, which is upper */

struct capture {
	const struct changes_source *src;
	int upper_fd, root_fd;
	int manifest_fd, contents_fd;

	struct walk walk;
	struct buf lines; /* not written yet */
	uint64_t written;
	int64_t end; /* of contents */
	struct inode_seen *seen;
	size_t nseen, cap_seen;
	struct changes_summary sum;
	struct pale_err *err;
};

/* A file with several names in the box: its content is kept once. Open addressing, by inode. */
struct inode_seen {
	ino_t ino;
	struct change *first; /* NULL: free */
};

static int fail(struct capture *c, int r, const char *what)
{
	char name[128];

	str_escape_into(name, sizeof(name), c->walk.path, c->walk.path_len);
	return err_set(c->err, r == -ENOMEM ? PALE_E_NOMEM : PALE_E_SYSTEM, "files", -r,
		       "%s \"%s\"", what, name);
}

static int flush(struct capture *c)
{
	int r;

	c->written += c->lines.len;
	if (c->written > MANIFEST_BYTES_MAX)
		return err_set(c->err, PALE_E_SYSTEM, "files", 0,
			       "the overlay of %s has more changes than are kept",
			       QUOTED(c->src->root));
	r = fd_write_all(c->manifest_fd, c->lines.data ? c->lines.data : "", c->lines.len);
	if (r < 0)
		return err_set(c->err, PALE_E_SYSTEM, "files", -r, "writing the manifest");
	c->lines.len = 0;
	return 0;
}

static int emit(struct capture *c, const struct change *e)
{
	switch (e->kind) {
	case CHANGE_ADDED: c->sum.added++; break;
	case CHANGE_MODIFIED: c->sum.modified++; break;
	case CHANGE_DELETED: c->sum.deleted++; break;
	case CHANGE_REFUSED: c->sum.refused++; break;
	default: c->sum.other++; break;
	}
	if (manifest_format(&c->lines, e) < 0)
		return err_nomem(c->err, "files");
	return c->lines.len > 65536 ? flush(c) : 0;
}

static int refuse(struct capture *c, const struct stat *st, const char *why)
{
	struct change e = {
		.path = c->walk.path,
		.kind = CHANGE_REFUSED,
		.type = change_type_of(st->st_mode),
		.mode = st->st_mode & 07777,
		.why = (char *)(uintptr_t)why,
	};

	return emit(c, &e);
}

static bool has_xattr(int fd, const char *name, char value)
{
	static const char *const spaces[] = {"user.overlay.", "trusted.overlay."};

	for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
		char key[64], got[8];
		ssize_t n;

		snprintf(key, sizeof(key), "%s%s", spaces[i], name);
		n = fgetxattr(fd, key, got, sizeof(got));
		if (n < 0 && errno == ERANGE)
			n = 1, got[0] = 0;
		if (n >= 0 && (!value || (n >= 1 && got[0] == value)))
			return true;
	}
	return false;
}

/* Below a mount point of the host the overlay saw something else than we would. */
static int open_host_dir(int dir, const char *name)
{
	return fd_openat2(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
			  RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
				  RESOLVE_NO_XDEV);
}

static int enter(struct capture *c, int fd, int other, unsigned flags, const struct stat *st)
{
	int r = walk_enter(&c->walk, fd, other, flags, st);

	return r < 0 ? fail(c, r, "reading the changed directory") : 0;
}

/* The current entry stood at name in the host's directory dir and is gone; what was in it follows.
 */
static int deleted(struct capture *c, int dir, const char *name, const struct stat *host)
{
	struct change e = {
		.path = c->walk.path,
		.kind = CHANGE_DELETED,
		.type = change_type_of(host->st_mode),
	};
	int r, fd;

	change_base_from_stat(&e.base, host);
	r = emit(c, &e);
	if (r < 0 || !S_ISDIR(host->st_mode) || walk_too_long(&c->walk))
		return r;
	fd = open_host_dir(dir, name);
	return fd < 0 ? 0 : enter(c, fd, -1, LEVEL_DELETED, host);
}

/* What the host's directory held when something else than a directory took its place. */
static int deleted_children(struct capture *c, int dir, const char *name, const struct stat *host)
{
	int fd;

	if (!host || !S_ISDIR(host->st_mode) || walk_too_long(&c->walk))
		return 0;
	fd = open_host_dir(dir, name);
	return fd < 0 ? 0 : enter(c, fd, -1, LEVEL_DELETED, host);
}

static struct change new_entry(struct capture *c, const struct stat *st, const struct stat *host)
{
	struct change e = {
		.path = c->walk.path,
		.kind = host ? CHANGE_MODIFIED : CHANGE_ADDED,
		.type = change_type_of(st->st_mode),
		.mode = st->st_mode & 07777,
		.mtime_ns = clock_ns_of(&st->st_mtim),
	};

	if (host)
		change_base_from_stat(&e.base, host);
	return e;
}

/* errno values that mean: this entry is not to be had, the rest is. */
static const char *why_unreadable(int error)
{
	switch (error) {
	case EACCES:
	case EPERM: return "its mode does not let it be read";
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case EXDEV:
	case ENODATA: return "it changed while it was read";
	case EMFILE:
	case ENFILE: return "it lies too deep";
	default: return NULL;
	}
}

static int unreadable(struct capture *c, const struct stat *st, int error)
{
	const char *why = why_unreadable(error);

	return why ? refuse(c, st, why) : fail(c, -error, "reading the changed file");
}

static int capture_dir(struct capture *c, const struct walk_level *l, const struct stat *st,
		       const struct stat *host)
{
	unsigned flags = l->flags & LEVEL_OPAQUE;
	int fd = fd_open_beneath(l->fd, c->walk.name, O_RDONLY | O_DIRECTORY, 0), other = -1, r = 0;
	bool over = host && S_ISDIR(host->st_mode);

	if (fd < 0)
		return unreadable(c, st, -fd);
	if (walk_too_long(&c->walk)) {
		close(fd);
		return refuse(c, st, "a path too long to go on");
	}
	if (has_xattr(fd, "redirect", 0)) {
		close(fd);
		return refuse(c, st, "a directory that was renamed within the overlay");
	}
	if (has_xattr(fd, "opaque", 'y'))
		flags |= LEVEL_OPAQUE;
	if (over)
		other = open_host_dir(l->other, c->walk.name);
	/* The setgid bit of a directory is the parent's doing, on the host as in the box. */
	if (!over || ((st->st_mode ^ host->st_mode) & 01777)) {
		struct change e = new_entry(c, st, host);

		e.mode &= 01777;
		if (over)
			e.kind = CHANGE_MODE;
		r = emit(c, &e);
	}
	if (r < 0) {
		close(fd);
		close_fd(&other);
		return r;
	}
	return enter(c, fd, other, flags, st);
}

static int capture_symlink(struct capture *c, const struct walk_level *l, const struct stat *st,
			   const struct stat *host)
{
	char target[MANIFEST_TARGET_MAX + 1], old[MANIFEST_TARGET_MAX + 1];
	struct change e = new_entry(c, st, host);
	ssize_t n = readlinkat(l->fd, c->walk.name, target, sizeof(target)), m;
	int r;

	if (n < 0)
		return unreadable(c, st, errno == EINVAL ? ELOOP : errno);
	if (n == 0 || n == (ssize_t)sizeof(target))
		return refuse(c, st, "the link's target is too long");
	target[n] = '\0';
	if (host && S_ISLNK(host->st_mode)) {
		m = readlinkat(l->other, c->walk.name, old, sizeof(old));
		if (m == n && memcmp(target, old, (size_t)n) == 0)
			return 0;
	}
	e.mode = 0777;
	e.target = target;
	r = emit(c, &e);
	return r < 0 ? r : deleted_children(c, l->other, c->walk.name, host);
}

static struct inode_seen *seen_slot(struct capture *c, ino_t ino)
{
	size_t at = (size_t)(ino * 0x9e3779b97f4a7c15u) & (c->cap_seen - 1);

	while (c->seen[at].first && c->seen[at].ino != ino)
		at = (at + 1) & (c->cap_seen - 1);
	return &c->seen[at];
}

/* The slot of an inode, with room for one more; NULL: out of memory. */
static struct inode_seen *seen_find(struct capture *c, ino_t ino)
{
	if (c->nseen * 2 >= c->cap_seen) {
		struct inode_seen *old = c->seen;
		size_t old_cap = c->cap_seen;

		c->cap_seen = old_cap ? old_cap * 2 : 64;
		c->seen = calloc(c->cap_seen, sizeof(*c->seen));
		if (!c->seen) {
			c->seen = old;
			c->cap_seen = old_cap;
			return NULL;
		}
		for (size_t i = 0; i < old_cap; i++)
			if (old[i].first)
				*seen_slot(c, old[i].ino) = old[i];
		free(old);
	}
	return seen_slot(c, ino);
}

static int remember(struct capture *c, struct inode_seen *slot, ino_t ino, const struct change *e)
{
	struct change *first = calloc(1, sizeof(*first));

	if (!first)
		return err_nomem(c->err, "files");
	*first = *e;
	first->path = strdup(e->path);
	if (!first->path) {
		free(first);
		return err_nomem(c->err, "files");
	}
	*slot = (struct inode_seen){.ino = ino, .first = first};
	c->nseen++;
	return 0;
}

/* Whether the file covers the host's with the same content: 1, 0, or a negative errno. */
static int same_content(const struct walk_level *l, const char *name, int fd, const struct stat *st,
			const struct stat *host)
{
	_cleanup_close_ int old = -1;
	struct stat now;

	if (!host || !S_ISREG(host->st_mode) || host->st_size != st->st_size)
		return 0;
	if (st->st_size == 0)
		return 1;
	old = fd_open_beneath(l->other, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (old < 0 || fstat(old, &now) < 0 || !S_ISREG(now.st_mode) ||
	    now.st_ino != host->st_ino || now.st_size != st->st_size)
		return 0;
	return copy_same(fd, 0, old, 0, st->st_size);
}

/* Appends the content to `contents`. 0, 1 if the entry was refused, or a negative code. */
static int store(struct capture *c, int fd, const struct stat *st, struct change *e)
{
	int64_t at = c->end, data;

	if (st->st_size >= 16 * ALIGN)
		at = (at + ALIGN - 1) / ALIGN * ALIGN;
	if (st->st_size > CONTENTS_MAX - at)
		return refuse(c, st, "a sparse file too large to keep") < 0 ? -PALE_E_SYSTEM : 1;
	data = copy_range(fd, 0, c->contents_fd, at, st->st_size, INT64_MAX, e->sha256);
	if (data >= 0 && data < st->st_size && ftruncate(c->contents_fd, at + st->st_size) < 0)
		data = -errno;
	if (data == -EFBIG)
		return refuse(c, st, "a file too large to keep") < 0 ? -PALE_E_SYSTEM : 1;
	if (data == -ENODATA)
		return unreadable(c, st, ENODATA) < 0 ? -PALE_E_SYSTEM : 1;
	if (data < 0)
		return fail(c, (int)data, "keeping the changed file");
	e->has_sha256 = e->sha256[0];
	e->size = (uint64_t)st->st_size;
	e->offset = (uint64_t)at;
	c->end = at + st->st_size;
	c->sum.bytes += (uint64_t)data;
	return 0;
}

static int capture_file(struct capture *c, const struct walk_level *l, const struct stat *st,
			const struct stat *host)
{
	_cleanup_close_ int fd =
		fd_open_beneath(l->fd, c->walk.name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	struct change e = new_entry(c, st, host);
	struct inode_seen *slot = NULL;
	struct stat now;
	int r;

	if (fd < 0)
		return unreadable(c, st, -fd);
	if (fstat(fd, &now) < 0 || !S_ISREG(now.st_mode) || now.st_ino != st->st_ino)
		return unreadable(c, st, ELOOP);
	if (now.st_size == 0 && has_xattr(fd, "whiteout", 0))
		return host ? deleted(c, l->other, c->walk.name, host) : 0;
	if (has_xattr(fd, "metacopy", 0))
		return refuse(c, st, "a file whose content the overlay keeps elsewhere");
	r = same_content(l, c->walk.name, fd, &now, host);
	if (r < 0)
		return unreadable(c, st, -r);
	if (r == 1) {
		if (e.mode != e.base.mode)
			e.kind = CHANGE_MODE;
		else if (e.mtime_ns != e.base.mtime_ns)
			e.kind = CHANGE_TOUCHED;
		else
			return 0; /* opened for writing only: the overlay made a copy, nothing
				     changed */
		return emit(c, &e);
	}
	if (now.st_nlink > 1) {
		slot = seen_find(c, now.st_ino);
		if (!slot)
			return err_nomem(c->err, "files");
	}
	if (slot && slot->first) {
		e.size = slot->first->size;
		e.offset = slot->first->offset;
		e.has_sha256 = slot->first->has_sha256;
		memcpy(e.sha256, slot->first->sha256, sizeof(e.sha256));
		e.links = slot->first->path;
	} else {
		r = store(c, fd, &now, &e);
		if (r != 0)
			return r < 0 ? r : 0;
		r = slot ? remember(c, slot, now.st_ino, &e) : 0;
		if (r < 0)
			return r;
	}
	r = emit(c, &e);
	return r < 0 ? r : deleted_children(c, l->other, c->walk.name, host);
}

static const char *special_name(mode_t mode)
{
	return S_ISFIFO(mode)	? "a FIFO"
	       : S_ISSOCK(mode) ? "a socket"
	       : S_ISCHR(mode)	? "a character device"
				: "a block device";
}

static int capture_entry(struct capture *c, const struct walk_level *l)
{
	struct stat st, covered;
	const struct stat *host = NULL;

	if (l->flags & LEVEL_REST && walk_has(l - 1, c->walk.name))
		return 0;
	if (fstatat(l->fd, c->walk.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fail(c, -errno, "looking at");
	if (l->flags & LEVEL_DELETED)
		return deleted(c, l->fd, c->walk.name, &st);
	if (l->other >= 0 && fstatat(l->other, c->walk.name, &covered, AT_SYMLINK_NOFOLLOW) == 0)
		host = &covered;
	if (S_ISCHR(st.st_mode) && st.st_rdev == 0)
		return host ? deleted(c, l->other, c->walk.name, host) : 0;
	if (S_ISDIR(st.st_mode))
		return capture_dir(c, l, &st, host);
	if (S_ISLNK(st.st_mode))
		return capture_symlink(c, l, &st, host);
	if (S_ISREG(st.st_mode))
		return capture_file(c, l, &st, host);
	return refuse(c, &st, special_name(st.st_mode));
}

/* A level is done. An opaque one then gives way to what the host's directory had besides. */
static int level_end(struct capture *c, struct walk_level *l)
{
	if (!(l->flags & LEVEL_OPAQUE) || l->other < 0) {
		walk_leave(&c->walk);
		return 0;
	}
	return enter(c, take_fd(&l->other), -1, LEVEL_DELETED | LEVEL_REST, &l->st);
}

static int capture_tree(struct capture *c)
{
	struct walk_level *l;
	struct stat st;
	int upper = fd_openat2(c->upper_fd, ".", O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_XDEV);
	int root = fd_openat2(c->root_fd, ".", O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_XDEV), r;

	if (upper < 0 || root < 0 || fstat(upper, &st) < 0) {
		r = upper < 0 ? upper : root < 0 ? root : -errno;
		close_fd(&upper);
		close_fd(&root);
		return fail(c, r, "opening the overlay's directories");
	}
	r = enter(c, upper, root, has_xattr(upper, "opaque", 'y') ? LEVEL_OPAQUE : 0, &st);
	while (r >= 0 && c->walk.depth) {
		r = walk_next(&c->walk, &l);
		if (r == 1)
			r = capture_entry(c, l);
		else if (r == 0)
			r = level_end(c, l);
	}
	return r;
}

static int capture_work(void *arg, int report_fd, void *payload, struct pale_err *err)
{
	struct capture *c = arg;
	int r;

	(void)report_fd;
	c->err = err;
	c->lines = BUF_INIT(MANIFEST_LINE_MAX + 65536 * 2);
	r = capture_tree(c);
	if (r >= 0)
		r = flush(c);
	_Static_assert(sizeof(c->sum) <= WORKER_PAYLOAD, "the summary fits");
	memcpy(payload, &c->sum, sizeof(c->sum));
	return r; /* the process ends here: nothing to release */
}

static int create_file(int dir, const char *name, struct pale_err *err)
{
	int fd = fd_open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -fd, "making %s for the changes", name);
	return fd;
}

/* Fills the directory that will be changes/<n>/. */
static int capture_into(struct capture *c, int dir, void *payload, struct pale_err *err)
{
	_cleanup_close_ int manifest = create_file(dir, "manifest.jsonl", err);
	_cleanup_close_ int contents = manifest < 0 ? -1 : create_file(dir, "contents", err);
	struct manifest meta = {
		.root = (char *)(uintptr_t)c->src->root,
		.path = (char *)(uintptr_t)c->src->path,
		.started_ns = c->src->started_ns,
	};
	struct worker w = {
		.userns_fd = c->src->userns_fd,
		.read_dirs = {c->upper_fd, c->root_fd},
		.write_dir = -1,
		.fds = {manifest, contents, -1, -1, -1, -1, -1, -1},
		.work = capture_work,
		.arg = c,
	};
	struct stat st;
	int r;

	if (manifest < 0 || contents < 0)
		return manifest < 0 ? manifest : contents;
	if (fstat(c->root_fd, &st) < 0)
		return err_set(err, PALE_E_SYSTEM, "files", errno, "looking at %s",
			       QUOTED(c->src->root));
	meta.root_dev = st.st_dev;
	meta.root_ino = st.st_ino;
	r = manifest_write_meta(dir, &meta, err);
	if (r < 0)
		return r;
	c->manifest_fd = manifest;
	c->contents_fd = contents;
	return worker_run(&w, payload, err);
}

static void remove_partial(int changes_fd, const char *name)
{
	static const char *const files[] = {"meta.json", "manifest.jsonl", "contents"};
	_cleanup_close_ int dir = fd_open_beneath(changes_fd, name, O_RDONLY | O_DIRECTORY, 0);

	for (size_t i = 0; dir >= 0 && i < ARRAY_SIZE(files); i++)
		unlinkat(dir, files[i], 0);
	unlinkat(changes_fd, name, AT_REMOVEDIR);
}

int changes_capture(const struct changes_source *src, int run_dir_fd, unsigned n,
		    struct changes_summary *ret, struct pale_err *err)
{
	_cleanup_close_ int changes = -1, dir = -1, root = -1;
	_cleanup_free_ struct capture *c = calloc(1, sizeof(*c));
	_Alignas(8) char payload[WORKER_PAYLOAD];
	char partial[32], final[32];
	int r;

	if (!c)
		return err_nomem(err, "files");
	snprintf(partial, sizeof(partial), "%u.partial", n);
	snprintf(final, sizeof(final), "%u", n);
	root = open(src->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_set(err, PALE_E_SYSTEM, "files", errno, "opening %s", QUOTED(src->root));
	if (mkdirat(run_dir_fd, "changes", 0700) < 0 && errno != EEXIST)
		return err_set(err, PALE_E_SYSTEM, "files", errno,
			       "making the run's changes directory");
	changes = fd_open_beneath(run_dir_fd, "changes", O_RDONLY | O_DIRECTORY, 0);
	if (changes < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -changes,
			       "opening the run's changes directory");
	remove_partial(changes, partial);
	if (mkdirat(changes, partial, 0700) < 0)
		return err_set(err, PALE_E_SYSTEM, "files", errno, "making the changes' directory");
	dir = fd_open_beneath(changes, partial, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -dir, "opening the changes' directory");
	c->src = src;
	c->upper_fd = src->upper_fd;
	c->root_fd = root;
	r = capture_into(c, dir, payload, err);
	if (r == 0 && renameat(changes, partial, changes, final) < 0)
		r = err_set(err, PALE_E_SYSTEM, "files", errno, "naming the changes' directory");
	if (r < 0) {
		remove_partial(changes, partial);
		return r;
	}
	memcpy(ret, payload, sizeof(*ret));
	return 0;
}
