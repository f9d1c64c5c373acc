/* Bringing back what an execution changed: see keeper_impl.h. In the keeper, with the rights of the
 * box, through the places as the box sees them: an upper directory must not be written to beside
 * its overlay. What still runs in the box may change everything meanwhile; it gains nothing by
 * that, because there is nothing here that it could not do itself: no link is followed, no other
 * mount entered, and what does not come out right is counted.
 *
 * In passes: directories are opened to their owner; what was not there is removed, which makes
 * room; what was there is made, parents first; at last directories get their modes and times back.
 *
 * The keeper ends after this: what the items point to is not freed. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fd.h"
#include "files/inside_tree.h"
#include "files/keeper_impl.h"
#include "files/walk.h"

#define BACK_US	  8000000
#define FROZEN_US 3000000 /* longer than any step by itself */
#define ITEMS_MAX 200000
#define BLOCK	  65536

struct item {
	unsigned place;
	const char *path;
	struct keeper_change *change; /* NULL: found on the way */
	struct keeper_change *within; /* then: of the directory that it was found in */
	bool deep;		      /* a directory of which all is to be compared */
	bool is_dir;		      /* it was, and gets mode and time back */
	uint32_t mode;
	int64_t mtime_ns;
};

struct work {
	struct back *b;
	struct item *items;
	size_t n, cap;
	uint64_t until_us, last_us;
	bool made;	 /* the directory was not there */
	uint64_t needed; /* bytes of memory */
};

/* Has it taken too long? The time in which the box was frozen, and we with it, does not count. */
static bool late(struct work *w)
{
	uint64_t now = clock_mono_us();

	if (w->last_us && now - w->last_us > FROZEN_US)
		w->until_us += now - w->last_us;
	w->last_us = now;
	return now > w->until_us;
}

static int push(struct work *w, const struct item *i)
{
	if (w->n == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 256;
		struct item *more =
			cap > ITEMS_MAX * 2 ? NULL : reallocarray(w->items, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		w->items = more;
		w->cap = cap;
	}
	w->items[w->n++] = *i;
	return 0;
}

static const struct entry *find(const struct snapshot *s, const struct item *i)
{
	return snapshot_find(s, i->place, i->path, strlen(i->path));
}

static struct state state_before(const struct work *w, const struct item *i)
{
	return keeper_state(&w->b->places[i->place], w->b->was, i->place, i->path,
			    find(w->b->was, i));
}

/* Of the path in the place; "" has none but itself. */
static int open_parent(const struct work *w, const struct item *i, const char **ret_name)
{
	const struct keeper_place *p = &w->b->places[i->place];
	const char *slash = strrchr(i->path, '/');
	char dir[KEEPER_PATH_MAX];

	if (p->write_fd < 0)
		return -ENOENT;
	*ret_name = slash ? slash + 1 : *i->path ? i->path : ".";
	if (slash) {
		memcpy(dir, i->path, (size_t)(slash - i->path));
		dir[slash - i->path] = '\0';
	}
	return tree_open(p->write_fd, slash ? dir : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW, 0,
			 TREE_BENEATH);
}

/* By a descriptor, so that no link that takes its place is followed. Where it cannot be opened, or
 * is another mount, one would have us change what the box can change itself. */
static int chmod_it(int parent, const char *name, mode_t mode)
{
	_cleanup_close_ int fd = tree_open(
		parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, TREE_BENEATH);

	if (fd < 0 && fd != -EACCES && fd != -EXDEV)
		return fd;
	return (fd < 0 ? fchmodat(parent, name, mode, 0) : fchmod(fd, mode)) < 0 ? -errno : 0;
}

/* Whatever it is. */
static int remove_it(int parent, const char *name)
{
	uint32_t count = 0;
	bool more = false;
	int r;

	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -errno;
	r = tree_remove(parent, name, true, &count, &more);
	return more ? -ETIMEDOUT : r == -ENOENT ? 0 : r;
}

/* --- files -------------------------------------------------------------------------------------
 */

/* The file that is there, if it has one name only and can be written, or a fresh one. */
static int open_to_write(int parent, const char *name)
{
	const int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	struct stat st;
	int fd = -ENOENT, r;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    st.st_nlink == 1) {
		fd = tree_open(parent, name, flags, 0, TREE_BENEATH);
		if (fd == -EACCES && chmod_it(parent, name, 0600) == 0)
			fd = tree_open(parent, name, flags, 0, TREE_BENEATH);
	}
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
		return fd;
	if (fd >= 0)
		close(fd);
	r = remove_it(parent, name);
	return r < 0 ? r : tree_open(parent, name, flags | O_CREAT | O_EXCL, 0600, TREE_BENEATH);
}

static int write_block(int fd, const char *data, size_t len, uint64_t at)
{
	while (len) {
		ssize_t n = pwrite(fd, data, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* Holes stay holes. */
static int copy_lower(struct work *w, const struct item *i, int to, uint64_t size)
{
	static char block[BLOCK];
	static const char zeros[BLOCK];
	struct stat st;
	_cleanup_close_ int from =
		tree_open(w->b->places[i->place].lower_fd, i->path,
			  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, TREE_BENEATH);

	if (from < 0)
		return from;
	if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return -ESTALE;
	if (ftruncate(to, 0) < 0)
		return -errno;
	for (uint64_t at = 0; at < size;) {
		size_t want = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
		ssize_t n = fd_pread_full(from, block, want, (int64_t)at);
		int r = 0;

		if (n <= 0)
			return n < 0 ? (int)n : -ESTALE;
		if (memcmp(block, zeros, (size_t)n) != 0)
			r = write_block(to, block, (size_t)n, at);
		if (r < 0)
			return r;
		if (late(w))
			return -ETIMEDOUT;
		at += (uint64_t)n;
	}
	return 0;
}

static int bring_file(struct work *w, const struct item *i, int parent, const char *name,
		      const struct state *was)
{
	const struct content *c = was->entry ? was->entry->content : NULL;
	_cleanup_close_ int fd = -1;
	struct timespec times[2];
	int r;

	if (was->entry && !c)
		return -ENODATA;
	fd = open_to_write(parent, name);
	if (fd < 0)
		return fd;
	r = c ? write_block(fd, c->data, c->len, 0) : copy_lower(w, i, fd, was->size);
	if (r < 0)
		return r;
	clock_mtime_of(was->mtime_ns, times);
	if (ftruncate(fd, (off_t)was->size) < 0 || fchmod(fd, was->mode & 07777) < 0 ||
	    futimens(fd, times) < 0)
		return -errno;
	return 0;
}

static int bring_link(struct work *w, const struct item *i, int parent, const char *name,
		      const struct state *was)
{
	char lower[KEEPER_PATH_MAX];
	const char *target = lower;
	struct timespec times[2];
	int r;

	if (was->entry) {
		if (!was->entry->content)
			return -ENODATA;
		target = was->entry->content->data;
	} else {
		_cleanup_close_ int fd = tree_open(w->b->places[i->place].lower_fd, i->path,
						   O_PATH | O_NOFOLLOW, 0, TREE_BENEATH);
		ssize_t n = fd < 0 ? fd : readlinkat(fd, "", lower, sizeof(lower) - 1);

		if (n < 0)
			return fd < 0 ? fd : -errno;
		lower[n] = '\0';
	}
	r = remove_it(parent, name);
	if (r < 0)
		return r;
	clock_mtime_of(was->mtime_ns, times);
	if (symlinkat(target, parent, name) < 0)
		return -errno;
	(void)!utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* --- directories -------------------------------------------------------------------------------
 */

static int bring_dir(struct work *w, struct item *i, int parent, const char *name,
		     const struct state *was)
{
	struct stat st;
	int r;

	w->made = false;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)) {
		r = remove_it(parent, name);
		if (r < 0)
			return r;
		if (mkdirat(parent, name, 0700) < 0)
			return -errno;
		w->made = true;
	} else if ((st.st_mode & 0700) != 0700) {
		r = chmod_it(parent, name, (st.st_mode & 07777) | 0700);
		if (r < 0)
			return r;
	}
	i->is_dir = true;
	i->mode = was->mode & 07777;
	i->mtime_ns = was->mtime_ns;
	return 0;
}

static char *join(const char *dir, const char *name)
{
	size_t a = strlen(dir), b = strlen(name);
	char *s = a + b + 2 > KEEPER_PATH_MAX ? NULL : malloc(a + b + 2);

	if (!s)
		return NULL;
	memcpy(s, dir, a);
	if (a)
		s[a++] = '/';
	memcpy(s + a, name, b + 1);
	return s;
}

/* Calls fn for each name in a directory; bounded by the time. */
static int each_name(struct work *w, int top, const char *path, const struct item *dir,
		     int (*fn)(struct work *w, int fd, const struct item *dir, const char *name))
{
	_Alignas(struct dirent_raw) char raw[8192];
	_cleanup_close_ int fd = tree_open(top, *path ? path : ".",
					   O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, TREE_BENEATH);
	int r = fd < 0 ? fd : 0;

	while (r == 0) {
		long n = syscall(SYS_getdents64, fd, raw, sizeof(raw));

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		for (long at = 0; at < n && r == 0;) {
			const struct dirent_raw *d = (const struct dirent_raw *)(raw + at);

			at += d->reclen;
			if (strcmp(d->name, ".") != 0 && strcmp(d->name, "..") != 0)
				r = fn(w, fd, dir, d->name);
		}
		if (r == 0 && late(w))
			r = -ETIMEDOUT;
	}
	return r;
}

static int remove_new(struct work *w, int fd, const struct item *dir, const char *name)
{
	struct item child = {.place = dir->place, .path = join(dir->path, name)};
	int r = child.path ? 0 : -ENAMETOOLONG;

	if (r == 0 && !state_before(w, &child).mode)
		r = remove_it(fd, name);
	free((char *)(uintptr_t)child.path);
	return r;
}

static struct item item_in(const struct item *dir, const char *name)
{
	return (struct item){
		.place = dir->place,
		.path = join(dir->path, name),
		.within = dir->change ? dir->change : dir->within,
		.deep = true,
	};
}

static int push_child(struct work *w, const struct item *dir, const char *name)
{
	struct item child = item_in(dir, name);

	return child.path ? push(w, &child) : -ENAMETOOLONG;
}

static int push_lower(struct work *w, int fd, const struct item *dir, const char *name)
{
	struct item child = item_in(dir, name);

	(void)fd;
	if (!child.path)
		return -ENAMETOOLONG;
	return !find(w->b->was, &child) && state_before(w, &child).mode ? push(w, &child) : 0;
}

/* All that was in a directory is still to come, and what was not goes. */
static int go_deep(struct work *w, const struct item *given)
{
	const struct item dir = *given; /* the array grows */
	const struct keeper_place *p = &w->b->places[dir.place];
	size_t len = strlen(dir.path);
	int r = w->made ? 0 : each_name(w, p->write_fd, dir.path, &dir, remove_new);

	for (size_t k = 0; k < w->b->was->n && r == 0; k++) {
		const struct entry *e = &w->b->was->entries[k];
		const char *path = snapshot_path(w->b->was, e);

		if (e->place != dir.place || !*path || strncmp(path, dir.path, len) != 0 ||
		    (len && path[len] != '/'))
			continue;
		path += len + (len > 0);
		if (!strchr(path, '/') && !e->whiteout)
			r = push_child(w, &dir, path);
	}
	if (r == 0 && p->lower_fd >= 0) {
		r = each_name(w, p->lower_fd, dir.path, &dir, push_lower);
		if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
			r = 0;
	}
	return r;
}

/* --- one after the other -----------------------------------------------------------------------
 */

/* Nothing has happened to it. */
static bool is_same(const struct work *w, const struct item *i)
{
	const struct entry *was = find(w->b->was, i), *is = find(w->b->is, i);

	return was && is && !S_ISDIR(was->mode) && !was->racy && entry_same(was, is);
}

static int bring(struct work *w, size_t at)
{
	struct item *i = &w->items[at];
	struct state was = state_before(w, i);
	_cleanup_close_ int parent = -1;
	const char *name;
	struct stat st;
	int r;

	if (!was.mode || is_same(w, i))
		return 0;
	parent = open_parent(w, i, &name);
	if (parent < 0)
		return parent;
	if (S_ISDIR(was.mode)) {
		r = bring_dir(w, i, parent, name, &was);
		return r == 0 && (w->made || i->deep) ? go_deep(w, i) : r;
	}
	if (S_ISREG(was.mode))
		return bring_file(w, i, parent, name, &was);
	if (S_ISLNK(was.mode))
		return bring_link(w, i, parent, name, &was);
	/* A FIFO or a socket: a new one would not be what others had opened. */
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    ((st.st_mode ^ was.mode) & S_IFMT))
		return -EOPNOTSUPP;
	/* Not opened: that does something to others who have it open. As for links: chmod_it(). */
	return fchmodat(parent, name, was.mode & 07777, 0) < 0 ? -errno : 0;
}

static void failed(struct work *w, const struct item *i, int error)
{
	struct keeper_change *c = i->change ? i->change : i->within;

	w->b->failed++;
	if (c && !c->error)
		c->error = error;
}

/* --- is there room? ----------------------------------------------------------------------------
 */

/* A directory that is another, or cannot be looked into: all of it is compared. */
static bool is_deep(const struct keeper_change *c)
{
	return c->is && S_ISDIR(c->is->mode) &&
	       (c->is->closed || (c->is->opaque && !(c->was && c->was->opaque)));
}

/* What lies under the overlay would be copied. What has an entry of before or now is, if it is a
 * file, a change by itself. */
static int count_lower(struct work *w, int fd, const struct item *dir, const char *name)
{
	struct item child = {.place = dir->place, .path = join(dir->path, name)};
	const struct entry *was = child.path ? find(w->b->was, &child) : NULL;
	struct stat st;

	if (!child.path)
		return -ENAMETOOLONG;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode) && (!was || (S_ISDIR(was->mode) && !was->opaque)))
			return push(w, &child);
		if (S_ISREG(st.st_mode) && !was && !find(w->b->is, &child))
			w->needed += (uint64_t)st.st_blocks * 512;
	}
	free((char *)(uintptr_t)child.path);
	return 0;
}

/* Of a file that lies under the overlay. */
static uint64_t memory_of_lower(const struct work *w, const struct item *i)
{
	struct stat st;
	_cleanup_close_ int fd = tree_open(w->b->places[i->place].lower_fd, i->path,
					   O_PATH | O_NOFOLLOW, 0, TREE_BENEATH);

	return fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

/* Against what goes: about, since that may have other names, or be held open. */
static int find_room(struct back *b)
{
	struct work w = {.b = b, .until_us = clock_mono_us() + BACK_US / 4};
	uint64_t room = b->room;
	int r = 0;

	for (size_t k = 0; k < b->n && r == 0; k++) {
		const struct keeper_change *c = &b->changes[k];
		struct item i = {.place = c->place, .path = c->path};
		struct state was = state_before(&w, &i);

		if (c->is && S_ISREG(c->is->mode))
			room += c->is->memory < UINT64_MAX - room ? c->is->memory : 0;
		if (S_ISREG(was.mode))
			w.needed += was.entry ? was.entry->memory : memory_of_lower(&w, &i);
		else if (S_ISDIR(was.mode) && b->places[c->place].lower_fd >= 0 &&
			 !(was.entry && was.entry->opaque) &&
			 (!c->is || !S_ISDIR(c->is->mode) || is_deep(c)))
			r = push(&w, &i);
	}
	for (size_t k = 0; k < w.n && r == 0 && w.needed <= room; k++) {
		struct item dir = w.items[k]; /* the array grows */

		r = each_name(&w, b->places[dir.place].lower_fd, dir.path, &dir, count_lower);
		/* Of before or of now, and not there. */
		if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EACCES || r == -EXDEV)
			r = 0;
	}
	free(w.items);
	return r < 0 ? r : w.needed > room ? -ENOSPC : 0;
}

static void open_directories(struct work *w)
{
	for (size_t k = 0; k < w->n; k++) {
		const struct item *i = &w->items[k];
		const struct entry *is = i->change->is;
		const char *name;

		if (!is || !S_ISDIR(is->mode) || (is->mode & 0700) == 0700)
			continue;

		_cleanup_close_ int parent = open_parent(w, i, &name);

		if (parent >= 0)
			(void)!chmod_it(parent, name, (is->mode & 07777) | 0700);
	}
}

static void remove_what_was_not(struct work *w)
{
	for (size_t k = 0; k < w->n; k++) {
		const struct item *i = &w->items[k];
		_cleanup_close_ int parent = -1;
		const char *name;
		int r;

		if (state_before(w, i).mode || !*i->path)
			continue;
		parent = open_parent(w, i, &name);
		/* With what it was in. */
		if (parent == -ENOENT || parent == -ENOTDIR)
			continue;
		r = parent < 0 ? parent : remove_it(parent, name);
		if (r == 0 && late(w))
			r = -ETIMEDOUT;
		if (r < 0)
			failed(w, i, -r);
	}
}

static void close_directories(struct work *w)
{
	for (size_t k = w->n; k-- > 0;) {
		struct item *i = &w->items[k];
		struct timespec times[2];
		const char *name;

		if (!i->is_dir)
			continue;

		_cleanup_close_ int parent = open_parent(w, i, &name);

		struct stat st;
		int r = parent < 0					      ? parent
			: fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
			: (st.st_mode & 07777) != i->mode ? chmod_it(parent, name, i->mode)
							  : 0;

		/* Of those that are not the box's user's (/tmp) the time cannot be set. */
		clock_mtime_of(i->mtime_ns, times);
		if (r == 0)
			(void)!utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);
		else
			failed(w, i, -r);
	}
}

/* Nothing was touched yet. */
static int refuse(struct back *b, int error)
{
	for (size_t k = 0; k < b->n; k++)
		b->changes[k].error = error;
	b->failed = (uint32_t)b->n;
	return error;
}

int keeper_bring_back(struct back *b)
{
	struct work w = {.b = b, .until_us = clock_mono_us() + BACK_US};
	int r = find_room(b);

	if (r < 0)
		return refuse(b, -r);

	for (size_t k = 0; k < b->n; k++) {
		struct keeper_change *c = &b->changes[k];
		struct item i = {
			.place = c->place, .path = c->path, .change = c, .deep = is_deep(c)};

		r = push(&w, &i);
		if (r < 0)
			return refuse(b, -r);
	}
	open_directories(&w);
	remove_what_was_not(&w);
	for (size_t k = 0; k < w.n; k++) {
		r = late(&w) ? -ETIMEDOUT : bring(&w, k);
		if (r < 0)
			failed(&w, &w.items[k], -r);
	}
	close_directories(&w);
	return 0;
}
