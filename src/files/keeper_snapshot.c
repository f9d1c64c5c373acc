/* Snapshots of a box's writable places: see keeper_snapshot.h. In the keeper: hostile are the
 * names, the shape, the modes and the contents of what is looked at, and it changes meanwhile.
 * Bounded are the entries, the bytes of their names, and the contents; nothing is followed, nothing
 * waited for.
 */
#include "files/keeper_snapshot.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "files/inside_tree.h"
#include "files/walk.h"

#define GETDENTS 32768
/* Coarser than the clock of any kernel that stamps files by its tick. */
#define RACY_NS	 25000000

static uint64_t held; /* bytes of contents, in all snapshots */

static void content_put(struct content *c)
{
	if (!c || --c->refs)
		return;
	held -= c->len;
	free(c);
}

void snapshot_done(struct snapshot *s)
{
	for (size_t i = 0; i < s->n; i++)
		content_put(s->entries[i].content);
	free(s->entries);
	free(s->index);
	buf_done(&s->names);
	*s = (struct snapshot){0};
}

/* --- names -------------------------------------------------------------------------------------
 */

static size_t hash(unsigned place, const char *path, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u ^ place;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)path[i]) * 0x100000001b3u;
	return (size_t)(h ^ h >> 32);
}

const struct entry *snapshot_find(const struct snapshot *s, unsigned place, const char *path,
				  size_t len)
{
	size_t at;

	if (!s->index_cap)
		return NULL;
	for (at = hash(place, path, len) & (s->index_cap - 1); s->index[at];
	     at = (at + 1) & (s->index_cap - 1)) {
		const struct entry *e = &s->entries[s->index[at] - 1];
		const char *name = snapshot_path(s, e);

		if (e->place == place && strncmp(name, path, len) == 0 && name[len] == '\0')
			return e;
	}
	return NULL;
}

static int grow(struct snapshot *s)
{
	size_t cap = s->cap ? s->cap * 2 : 64;
	struct entry *entries = reallocarray(s->entries, cap, sizeof(*entries));
	uint32_t *index = calloc(cap * 2, sizeof(*index));

	if (entries)
		s->entries = entries;
	if (!entries || !index) {
		free(index);
		return -ENOMEM;
	}
	free(s->index);
	s->index = index;
	s->index_cap = cap * 2;
	s->cap = cap;
	for (size_t i = 0; i < s->n; i++) {
		const char *path = snapshot_path(s, &s->entries[i]);
		size_t at = hash(s->entries[i].place, path, strlen(path)) & (s->index_cap - 1);

		while (s->index[at])
			at = (at + 1) & (s->index_cap - 1);
		s->index[at] = (uint32_t)i + 1;
	}
	return 0;
}

/* dir/name; 0, or a negative errno: then all that comes is left out. */
static int add(struct snapshot *s, unsigned place, uint32_t dir, const char *name,
	       const struct entry *what)
{
	/* By its number: the buffer moves when it grows. */
	size_t dir_len = s->names.data ? strlen(s->names.data + dir) : 0, at, len;
	size_t name_len = strlen(name);
	char *to;

	if (s->n >= KEEPER_ENTRIES)
		return -E2BIG;
	if (s->n == s->cap && grow(s) < 0)
		return -ENOMEM;
	len = dir_len ? dir_len + 1 + name_len : name_len;
	if (len >= KEEPER_PATH_MAX)
		return -ENAMETOOLONG;
	to = buf_room(&s->names, len + 1);
	if (!to)
		return -E2BIG;
	if (dir_len) {
		memcpy(to, s->names.data + dir, dir_len);
		to[dir_len] = '/';
		memcpy(to + dir_len + 1, name, name_len + 1);
	} else {
		memcpy(to, name, name_len + 1);
	}
	at = hash(place, to, len) & (s->index_cap - 1);
	while (s->index[at])
		at = (at + 1) & (s->index_cap - 1);
	s->entries[s->n] = *what;
	s->entries[s->n].place = (uint16_t)place;
	s->entries[s->n].path = (uint32_t)s->names.len;
	s->names.len += len + 1;
	s->index[at] = (uint32_t)++s->n;
	return 0;
}

/* --- looking -----------------------------------------------------------------------------------
 */

static struct entry entry_of(const struct stat *st, int64_t now)
{
	struct entry e = {
		.mode = st->st_mode,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.memory = (uint64_t)st->st_blocks * 512,
		.mtime_ns = clock_ns_of(&st->st_mtim),
		.ctime_ns = clock_ns_of(&st->st_ctim),
	};

	e.racy = e.ctime_ns > now - RACY_NS;
	return e;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return clock_ns_of(&t);
}

static int open_dir(const struct keeper_place *p, const char *path)
{
	return tree_open(p->scan_fd, *path ? path : ".",
			 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0, TREE_BENEATH);
}

static void look_at(const struct keeper_place *p, int dir, const char *name, struct entry *e)
{
	char value[4];

	if (p->lower_fd < 0)
		return;
	if (S_ISCHR(e->mode)) {
		e->whiteout = true;
	} else if (S_ISDIR(e->mode)) {
		/* One that is closed to us is read as it is when it has been opened. */
		_cleanup_close_ int fd =
			tree_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, TREE_BENEATH);

		e->opaque = fd >= 0 &&
			    fgetxattr(fd, "user.overlay.opaque", value, sizeof(value)) == 1 &&
			    value[0] == 'y';
	}
}

/* What is in entry number i, a directory. */
static int scan_dir(struct snapshot *s, const struct keeper_place *places, size_t i, int64_t now)
{
	_Alignas(struct dirent_raw) static char raw[GETDENTS];
	const struct keeper_place *p = &places[s->entries[i].place];
	_cleanup_close_ int fd = open_dir(p, snapshot_path(s, &s->entries[i]));
	unsigned place = s->entries[i].place;
	int r;

	/* Another mount's, or gone since, or replaced. */
	if (fd == -EXDEV || fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0) {
		s->entries[i].closed = true;
		if (!s->why)
			s->why = -fd;
		return 0;
	}
	for (;;) {
		long n = syscall(SYS_getdents64, fd, raw, sizeof(raw));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		for (long at = 0; at < n;) {
			const struct dirent_raw *d = (const struct dirent_raw *)(raw + at);
			struct entry e;
			struct stat st;

			at += d->reclen;
			if (strcmp(d->name, ".") == 0 || strcmp(d->name, "..") == 0)
				continue;
			if (fstatat(fd, d->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
				continue;
			e = entry_of(&st, now);
			look_at(p, fd, d->name, &e);
			r = add(s, place, s->entries[i].path, d->name, &e);
			if (r < 0)
				return r;
		}
	}
}

void snapshot_take(struct snapshot *s, const struct keeper_place *places, size_t nplaces)
{
	int64_t now = now_ns();
	int r = 0;

	*s = (struct snapshot){.names = BUF_INIT(SNAPSHOT_NAMES)};
	for (size_t i = 0; i < nplaces && r == 0; i++) {
		struct stat st;
		struct entry e;

		if (fstat(places[i].scan_fd, &st) < 0) {
			r = -errno;
			break;
		}
		e = entry_of(&st, now);
		/* The first path is empty, and the start of all others. */
		if (!s->names.len) {
			char *first = buf_room(&s->names, 1);

			r = first ? 0 : -ENOMEM;
			if (first)
				*first = '\0';
		}
		if (r == 0)
			r = add(s, (unsigned)i, 0, "", &e);
	}
	/* Each directory that is found is looked at when its turn comes. */
	for (size_t i = 0; i < s->n && r == 0; i++)
		if (S_ISDIR(s->entries[i].mode))
			r = scan_dir(s, places, i, now);
	if (r < 0)
		s->why = -r;
}

bool entry_same(const struct entry *a, const struct entry *b)
{
	return a->ino == b->ino && a->size == b->size && a->mode == b->mode &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* --- contents ----------------------------------------------------------------------------------
 */

static struct content *content_new(size_t len)
{
	struct content *c = malloc(sizeof(*c) + len + 1);

	if (!c)
		return NULL;
	*c = (struct content){.refs = 1, .len = len};
	held += len;
	return c;
}

static int open_file(const struct keeper_place *p, const char *path, struct stat *st)
{
	int fd = tree_open(p->scan_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0,
			   TREE_BENEATH);

	if (fd < 0)
		return fd;
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

static int read_file(const struct keeper_place *p, const char *path, struct entry *e)
{
	struct stat st;
	_cleanup_close_ int fd = open_file(p, path, &st);
	ssize_t n;

	if (fd < 0)
		return fd;
	if (st.st_ino != e->ino || (uint64_t)st.st_size != e->size)
		return -ESTALE;
	e->content = content_new((size_t)e->size);
	if (!e->content)
		return -ENOMEM;
	n = fd_pread_full(fd, e->content->data, (size_t)e->size, 0);
	if (n < 0)
		return (int)n;
	/* Written to while it was read: what it was before is not to be had. */
	if ((uint64_t)n != e->size || fstat(fd, &st) < 0 ||
	    clock_ns_of(&st.st_mtim) != e->mtime_ns || (uint64_t)st.st_size != e->size)
		return -ESTALE;
	return 0;
}

static int read_link(const struct keeper_place *p, const char *path, struct entry *e)
{
	_cleanup_close_ int fd = tree_open(p->scan_fd, path, O_PATH | O_NOFOLLOW, 0, TREE_BENEATH);
	ssize_t n;

	if (fd < 0)
		return fd;
	e->content = content_new((size_t)e->size);
	if (!e->content)
		return -ENOMEM;
	n = readlinkat(fd, "", e->content->data, (size_t)e->size + 1);
	if (n < 0)
		return -errno;
	if ((uint64_t)n != e->size)
		return -ESTALE;
	e->content->data[n] = '\0';
	return 0;
}

void snapshot_share(struct snapshot *s, const struct snapshot *from)
{
	for (size_t i = 0; i < s->n; i++) {
		struct entry *e = &s->entries[i];
		const char *path = snapshot_path(s, e);
		const struct entry *old =
			e->content ? NULL : snapshot_find(from, e->place, path, strlen(path));

		if (!old || !old->content || old->racy || !entry_same(old, e))
			continue;
		e->content = old->content;
		e->content->refs++;
	}
}

static uint64_t holes_of(const struct entry *e)
{
	return S_ISREG(e->mode) && e->memory < e->size ? e->size - e->memory : 0;
}

int snapshot_keep(struct snapshot *s, const struct keeper_place *places, uint64_t budget)
{
	uint64_t holes = 0;
	int why = s->why;

	for (size_t i = 0; i < s->n; i++) {
		struct entry *e = &s->entries[i];
		bool link = S_ISLNK(e->mode);
		int r = 0;

		if ((!S_ISREG(e->mode) && !link) || (link && e->size >= KEEPER_PATH_MAX))
			continue;
		if (holes_of(e) > SNAPSHOT_HOLES - holes ||
		    (e->content ? held > budget : held > budget || e->size > budget - held))
			r = -EFBIG;
		else if (!e->content)
			r = link ? read_link(&places[e->place], snapshot_path(s, e), e)
				 : read_file(&places[e->place], snapshot_path(s, e), e);
		if (r < 0) {
			content_put(e->content);
			e->content = NULL;
			why = why ? why : -r;
			continue;
		}
		holes += holes_of(e);
	}
	return why;
}

bool content_is(const struct keeper_place *p, const char *path, const struct content *c)
{
	struct stat st;
	_cleanup_close_ int fd = open_file(p, path, &st);
	char block[16384];
	size_t at = 0;

	if (fd < 0 || (uint64_t)st.st_size != c->len)
		return false;
	while (at < c->len) {
		size_t want = c->len - at < sizeof(block) ? c->len - at : sizeof(block);

		if (fd_pread_full(fd, block, want, (int64_t)at) != (ssize_t)want ||
		    memcmp(block, c->data + at, want) != 0)
			return false;
		at += want;
	}
	return true;
}
