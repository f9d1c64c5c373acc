/* Retention: see prune.h.
 *
 * Runs in `pale audit` (and once a day at the end of `pale run`) with the caller's privileges. The
 * runs' directories hold what boxes left (as plain files); they are removed by descriptor, without
 * following links. A run is removed with its log's lock held, so that it is neither live nor being
 * applied, and is first renamed out of runs/, so that no command sees half of it. */
#include "prune.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "audit/index.h"
#include "audit/state.h"
#include "audit/ulid.h"
#include "base/fd.h"

#define STAGE "audit"
#define DEPTH 64
#define STAMP "pruned"
#define TRASH "removed-"

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Adds up, or removes, everything below at/name. */
static int walk(int at, const char *name, bool remove, unsigned depth, uint64_t *bytes)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_(close_dir) DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		int r = -errno;

		close_fd(&fd);
		return r;
	}
	if (depth > DEPTH)
		return -ELOOP;
	for (struct dirent *e; (e = readdir(d));) {
		struct stat st;
		int r = 0;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*bytes += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode))
			r = walk(dirfd(d), e->d_name, remove, depth + 1, bytes);
		else if (remove && unlinkat(dirfd(d), e->d_name, 0) < 0)
			r = -errno;
		if (r < 0)
			return r;
	}
	return remove && unlinkat(at, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* 1: removed; 0: it is live. */
static int remove_run(const struct audit_state *s, const char *id, struct pale_err *err)
{
	_cleanup_close_ int log = -1;
	char gone[AUDIT_ID_SIZE + sizeof(TRASH)];
	struct stat st;
	uint64_t bytes = 0;
	int r = audit_state_run(s, id, O_RDWR, NULL, &log, err);

	if (r < 0 && r != -PALE_E_NOTFOUND)
		return r;
	if (fstatat(s->active, id, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (log >= 0 && audit_lock(log, false) < 0)
		return 0;
	snprintf(gone, sizeof(gone), TRASH "%s", id);
	if (renameat(s->runs, id, s->runs, gone) < 0)
		return errno == ENOENT
			       ? 1
			       : err_set(err, PALE_E_AUDIT, STAGE, errno, "removing run %s", id);
	r = walk(s->runs, gone, true, 0, &bytes);
	return r < 0 && r != -ENOENT ? err_set(err, PALE_E_AUDIT, STAGE, -r, "removing run %s", id)
				     : 1;
}

struct item {
	char id[AUDIT_ID_SIZE];
	bool unapplied, live, old;
	uint64_t bytes;
};

struct list {
	struct item *items;
	size_t n, room;
	const char *before;
};

static int collect(void *arg, const struct audit_row *row)
{
	struct list *l = arg;

	if (l->n == l->room) {
		size_t room = l->room ? l->room * 2 : 256;
		struct item *more = reallocarray(l->items, room, sizeof(*more));

		if (!more)
			return -PALE_E_NOMEM;
		l->items = more;
		l->room = room;
	}
	struct item *i = &l->items[l->n++];

	*i = (struct item){.unapplied = row->unapplied, .live = row->live};
	snprintf(i->id, sizeof(i->id), "%s", row->id);
	i->old = l->before && row->started && strcmp(row->started, l->before) < 0;
	return 0;
}

/* What an interrupted removal left. */
static void remove_trash(const struct audit_state *s)
{
	int fd = openat(s->runs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(close_dir) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	uint64_t bytes = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		if (strncmp(e->d_name, TRASH, strlen(TRASH)) == 0)
			(void)walk(s->runs, e->d_name, true, 0, &bytes);
}

static void index_done(struct audit_index **ix)
{
	audit_index_free(*ix);
}

int audit_prune(const struct audit_prune *how, struct audit_pruned *ret, struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	_cleanup_(index_done) struct audit_index *ix = NULL;
	struct list l = {.before = how->before};
	const struct audit_filter all = {0};
	uint64_t total = 0;
	int r = audit_state_open(&s, err);

	*ret = (struct audit_pruned){0};
	if (r >= 0) {
		memcpy(ret->path, s.path, sizeof(ret->path));
		r = audit_index_open(false, &ix, err);
	}
	if (r >= 0)
		r = audit_index_query(ix, &all, collect, &l, err);
	_cleanup_free_ struct item *items = l.items;

	if (r < 0)
		return r == -PALE_E_NOMEM ? err_nomem(err, STAGE) : r;
	if (!how->dry_run)
		remove_trash(&s);
	for (size_t i = 0; i < l.n; i++) {
		(void)walk(s.runs, items[i].id, false, 0, &items[i].bytes);
		total += items[i].bytes;
	}
	/* The list is newest first. */
	for (size_t i = l.n; i-- > 0;) {
		struct item *it = &items[i];
		bool goes = it->old || (how->max_bytes && total > how->max_bytes);

		if (goes && it->live)
			ret->live++;
		else if (goes && it->unapplied && !how->force)
			ret->unapplied++;
		else if (goes) {
			r = how->dry_run ? 1 : remove_run(&s, it->id, err);
			if (r < 0)
				return r;
			if (r > 0) {
				if (how->each)
					how->each(how->arg, it->id, it->bytes);
				ret->runs++;
				ret->bytes += it->bytes;
				total -= it->bytes;
				continue;
			}
			ret->live++;
		}
		ret->kept_runs++;
	}
	ret->kept_bytes = total;
	return 0;
}

void audit_prune_daily(void)
{
	const struct audit_prune how = {.max_bytes = AUDIT_MAX_BYTES};
	struct audit_pruned done;
	struct timespec now;
	struct stat st;
	_cleanup_close_ int dir = audit_state_dir(NULL, 0, NULL);

	if (dir < 0)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	if (fstatat(dir, STAMP, &st, AT_SYMLINK_NOFOLLOW) == 0 && now.tv_sec >= st.st_mtim.tv_sec &&
	    now.tv_sec - st.st_mtim.tv_sec < 86400)
		return;
	/* First the stamp: of several commands that come here at once, most then leave it to one.
	 */
	_cleanup_close_ int fd =
		openat(dir, STAMP, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 || futimens(fd, NULL) < 0)
		return;
	(void)!audit_prune(&how, &done, NULL);
}
