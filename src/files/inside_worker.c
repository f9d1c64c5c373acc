/* The worker in a running box: see inside.h.
 *
 * A fork of the supervisor that has become the box's user in the box's namespaces, without a
 * capability, under the box's Landlock rules, with a filter of its own, and holds nothing but a
 * socket and a memory file (the keeper of a session also directories, to read: what the box wrote
 * to its overlays, and what lies under them). So that what a path leads to is decided by the
 * kernel, with the rights of the box, in the box's view, whatever the box's processes do to it
 * meanwhile: there is nothing here that they could not do themselves. They neither see this process
 * nor reach it.
 *
 * Hostile: everything that is looked at. Paths end in regular files and directories, or nowhere:
 * nothing is opened that could make us wait (FIFOs, leases: O_NONBLOCK), act on being opened
 * (devices), or tell of processes (/proc). Whoever asks bounds the time of a request, and kills us
 * when it is over. */
#include "files/inside_worker.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sanitized.h"
#include "confine/cgroup.h"
#include "files/inside_tree.h"
#include "files/inside_wire.h"
#include "files/keeper.h"
#include "files/worker.h"
#include "files/walk.h"

#define STAGE	 "files"
#define LIST_US	 5000000
#define FIRST_FD 3   /* socket and memory; nothing else is open but what a request opens */
#define HIGH_FD	 512 /* above all that is kept */
#define GETDENTS 32768

static int root;       /* of the box */
static dev_t proc_dev; /* its /proc */
static char *data;     /* the memory file */
static bool has_proc;

/* --- paths -------------------------------------------------------------------------------------
 */

static int open_path(const char *path, int flags, mode_t mode)
{
	return tree_open(root, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

static struct inside_stat stat_of(const struct stat *st)
{
	return (struct inside_stat){
		.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.links = st->st_nlink > UINT32_MAX ? UINT32_MAX : (uint32_t)st->st_nlink,
		.size = (uint64_t)st->st_size,
		.mtime_ns = clock_ns_of(&st->st_mtim),
	};
}

static int look(int fd, struct stat *st)
{
	if (fstat(fd, st) < 0)
		return -errno;
	/* It tells of processes, and acts on being written to. */
	return has_proc && st->st_dev == proc_dev ? -EACCES : 0;
}

/* The file itself, opened: only if it is one, before and after. */
static int open_file(const char *path, int flags, mode_t mode, struct inside_answer *a,
		     struct stat *st)
{
	_cleanup_close_ int fd = open_path(path, O_PATH, 0);
	int r = fd < 0 ? fd : look(fd, st);

	if (r == -ENOENT && flags & O_CREAT) {
		a->more = 1;
	} else if (r < 0) {
		return r;
	} else {
		a->st = stat_of(st);
		if (!S_ISREG(st->st_mode))
			return S_ISDIR(st->st_mode) ? -EISDIR : -ENXIO;
	}
	close_fd(&fd);
	fd = open_path(path, flags | O_NONBLOCK | O_NOCTTY, mode);
	r = fd < 0 ? fd : look(fd, st);
	if (r < 0)
		return r;
	a->st = stat_of(st);
	return S_ISREG(st->st_mode) ? take_fd(&fd) : -ENXIO;
}

/* Splits off the last name; the parent is opened. What has none ("/", "a/..") cannot be made or
 * removed. */
static int open_parent(char *path, const char **ret_name)
{
	size_t len = strlen(path);
	char *slash;

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return -EINVAL;
	*ret_name = slash + 1;
	if (!**ret_name || strcmp(*ret_name, ".") == 0 || strcmp(*ret_name, "..") == 0)
		return -EINVAL;
	if (strlen(*ret_name) > INSIDE_NAME_MAX)
		return -ENAMETOOLONG;
	*slash = '\0';
	return open_path(*path ? path : "/", O_PATH | O_DIRECTORY, 0);
}

/* --- requests ----------------------------------------------------------------------------------
 */

static int do_stat(const struct inside_request *q, struct inside_answer *a)
{
	_cleanup_close_ int fd =
		open_path(q->path, O_PATH | (q->flags & INSIDE_FOLLOW ? 0 : O_NOFOLLOW), 0);
	struct stat st;
	ssize_t n;
	int r = fd < 0 ? fd : look(fd, &st);

	if (r < 0)
		return r;
	a->st = stat_of(&st);
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(fd, "", data, INSIDE_PATH_MAX);
		if (n < 0)
			return -errno;
		a->length = (uint32_t)n;
	}
	return 0;
}

static int do_read(const struct inside_request *q, struct inside_answer *a)
{
	struct stat st;
	_cleanup_close_ int fd = open_file(q->path, O_RDONLY, 0, a, &st);
	ssize_t n;

	if (fd < 0)
		return fd;
	/* What is there now: a file that grows meanwhile is read up to what was asked for. */
	n = fd_pread_full(fd, data, q->length, (int64_t)q->offset);
	if (n < 0)
		return (int)n;
	if (fstat(fd, &st) == 0)
		a->st = stat_of(&st);
	a->length = (uint32_t)n;
	a->more = (uint64_t)n == q->length && q->offset + q->length < a->st.size;
	return 0;
}

static int do_write(const struct inside_request *q, struct inside_answer *a)
{
	struct stat st;
	_cleanup_close_ int fd = open_file(
		q->path, O_WRONLY | (q->flags & INSIDE_CREATE ? O_CREAT : 0), q->mode, a, &st);
	uint64_t at;

	if (fd < 0)
		return fd;
	if (q->flags & INSIDE_CHMOD && (st.st_mode & 07777) != q->mode && fchmod(fd, q->mode) < 0)
		return -errno;
	if (q->flags & INSIDE_TRUNCATE && st.st_size && ftruncate(fd, 0) < 0)
		return -errno;
	at = q->flags & INSIDE_APPEND ? (uint64_t)st.st_size : q->offset;
	while (a->length < q->length) {
		ssize_t n = pwrite(fd, data + a->length, q->length - a->length,
				   (int64_t)(at + a->length));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		a->length += (uint32_t)n;
	}
	if (fstat(fd, &st) == 0)
		a->st = stat_of(&st);
	return 0;
}

/* One component after the other, each from the root on: what a link on the way leads to is a
 * directory of the box as well. */
static int make_parents(char *path, mode_t mode)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		_cleanup_close_ int parent = -1;
		char copy[INSIDE_PATH_MAX];
		const char *name;
		int r = 0;

		if (slash[-1] == '/')
			continue;
		*slash = '\0';
		memcpy(copy, path, strlen(path) + 1);
		parent = open_parent(copy, &name);
		if (parent < 0)
			r = parent == -EINVAL ? 0 : parent;
		else if (mkdirat(parent, name, mode) < 0 && errno != EEXIST)
			r = -errno;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

static int do_mkdir(struct inside_request *q, struct inside_answer *a)
{
	_cleanup_close_ int parent = -1;
	const char *name;
	struct stat st;
	int r = q->flags & INSIDE_PARENTS ? make_parents(q->path, 0755) : 0;

	if (r < 0)
		return r;
	parent = open_parent(q->path, &name);
	if (parent < 0)
		return parent;
	if (mkdirat(parent, name, q->mode) == 0)
		a->more = 1;
	else if (errno != EEXIST || !(q->flags & INSIDE_PARENTS))
		return -errno;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	a->st = stat_of(&st);
	return a->more || S_ISDIR(st.st_mode) ? 0 : -EEXIST;
}

/* --- lists -------------------------------------------------------------------------------------
 */

/* The names that come first, of a directory of any size: a heap with the last of them on top. */
static char names[INSIDE_LIST_MAX][INSIDE_NAME_MAX + 1];
static uint16_t heap[INSIDE_LIST_MAX];
static size_t nheap;

static int compare(size_t a, size_t b)
{
	return strcmp(names[heap[a]], names[heap[b]]);
}

static void swap(size_t a, size_t b)
{
	uint16_t t = heap[a];

	heap[a] = heap[b];
	heap[b] = t;
}

static void sift_up(size_t at)
{
	while (at && compare(at, (at - 1) / 2) > 0) {
		swap(at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

static void sift_down(size_t n)
{
	size_t at = 0, child;

	while ((child = 2 * at + 1) < n) {
		if (child + 1 < n && compare(child + 1, child) > 0)
			child++;
		if (compare(child, at) <= 0)
			return;
		swap(at, child);
		at = child;
	}
}

/* Whether one had to be left out. */
static bool take_name(const char *name, size_t max)
{
	size_t len = strlen(name);

	if (len > INSIDE_NAME_MAX)
		return false;
	if (nheap < max) {
		heap[nheap] = (uint16_t)nheap;
		memcpy(names[nheap], name, len + 1);
		sift_up(nheap++);
		return false;
	}
	if (strcmp(name, names[heap[0]]) < 0) {
		memcpy(names[heap[0]], name, len + 1);
		sift_down(nheap);
	}
	return true;
}

static int read_names(int fd, const struct inside_request *q, bool *ret_more)
{
	_Alignas(struct dirent_raw) static char raw[GETDENTS];
	uint64_t until = clock_mono_us() + LIST_US;

	nheap = 0;
	for (;;) {
		long n = syscall(SYS_getdents64, fd, raw, sizeof(raw));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		for (long at = 0; at < n;) {
			const struct dirent_raw *d = (const struct dirent_raw *)(raw + at);

			at += d->reclen;
			if (strcmp(d->name, ".") != 0 && strcmp(d->name, "..") != 0 &&
			    strcmp(d->name, q->after) > 0 && take_name(d->name, q->length))
				*ret_more = true;
		}
		if (clock_mono_us() > until)
			return -ETIMEDOUT;
	}
}

/* False: it does not fit any more. */
static bool put_entry(int dir, const char *name, struct inside_answer *a)
{
	struct inside_entry e = {.name_len = (uint16_t)strlen(name)};
	char target[INSIDE_PATH_MAX];
	struct stat st;
	ssize_t n;

	/* Gone since. */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	e.st = stat_of(&st);
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(dir, name, target, sizeof(target));
		e.target_len = n > 0 ? (uint16_t)n : 0;
	}
	if (a->length + sizeof(e) + e.name_len + e.target_len > INSIDE_DATA_MAX)
		return false;
	memcpy(data + a->length, &e, sizeof(e));
	a->length += sizeof(e);
	memcpy(data + a->length, name, e.name_len);
	a->length += e.name_len;
	memcpy(data + a->length, target, e.target_len);
	a->length += e.target_len;
	a->count++;
	return true;
}

static int do_list(const struct inside_request *q, struct inside_answer *a)
{
	_cleanup_close_ int fd = open_path(q->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
	struct stat st;
	bool more = false;
	int r = fd < 0 ? fd : look(fd, &st);

	if (r == 0)
		r = read_names(fd, q, &more);
	if (r < 0)
		return r;
	a->st = stat_of(&st);
	for (size_t n = nheap; n > 1; n--) {
		swap(0, n - 1);
		sift_down(n - 1);
	}
	for (size_t i = 0; i < nheap; i++)
		if (!put_entry(fd, names[heap[i]], a)) {
			more = true;
			break;
		}
	a->more = more;
	return 0;
}

/* --- removing ----------------------------------------------------------------------------------
 */

static int do_remove(struct inside_request *q, struct inside_answer *a)
{
	const char *name;
	_cleanup_close_ int parent = open_parent(q->path, &name);
	struct stat st;
	bool more = false;

	if (parent < 0)
		return parent;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	a->st = stat_of(&st);
	if (S_ISDIR(st.st_mode) && q->flags & INSIDE_RECURSIVE) {
		int r = tree_remove(parent, name, false, &a->count, &more);

		/* It was filled while it was emptied. */
		a->more = more || (r == 0 && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
		return r;
	}
	if (unlinkat(parent, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
		return -errno;
	a->count = 1;
	return 0;
}

/* ---- links: a text, which leads nowhere but in the box ---- */

static int do_link(struct inside_request *q, struct inside_answer *a)
{
	char target[INSIDE_PATH_MAX];
	const char *name;
	_cleanup_close_ int parent = open_parent(q->path, &name);
	struct stat st;

	if (parent < 0)
		return parent;
	if (!q->length || q->length >= sizeof(target))
		return q->length ? -ENAMETOOLONG : -EINVAL;
	memcpy(target, data, q->length);
	target[q->length] = '\0';
	if (strlen(target) != q->length)
		return -EINVAL;
	/* Only a link makes room for a link. */
	if (q->flags & INSIDE_REPLACE && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode) && unlinkat(parent, name, 0) < 0)
		return -errno;
	if (symlinkat(target, parent, name) < 0 ||
	    fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	a->st = stat_of(&st);
	return 0;
}

static int handle(struct inside_request *q, struct inside_answer *a)
{
	q->path[sizeof(q->path) - 1] = '\0';
	q->after[sizeof(q->after) - 1] = '\0';
	if (q->length > INSIDE_DATA_MAX || q->mode & ~0777u ||
	    (q->op == INSIDE_LIST && (q->length == 0 || q->length > INSIDE_LIST_MAX)))
		return -EINVAL;
	switch ((enum inside_op)q->op) {
	case INSIDE_STAT: return do_stat(q, a);
	case INSIDE_LIST: return do_list(q, a);
	case INSIDE_READ: return do_read(q, a);
	case INSIDE_WRITE: return do_write(q, a);
	case INSIDE_MKDIR: return do_mkdir(q, a);
	case INSIDE_REMOVE: return do_remove(q, a);
	case INSIDE_LINK: return do_link(q, a);
	case INSIDE_KEEP:
	case INSIDE_LOOK:
	case INSIDE_BACK: break;
	}
	return -EINVAL;
}

/* --- its life ----------------------------------------------------------------------------------
 */

/* Should the box's memory be used up while we write into it, we are who has to go. */
static void offer_first(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, "1000", 4);
}

/* The keeper's own memory is bounded by what it counts; this is for what it should count wrong. On
 * top of what it has from the supervisor, of which it is a fork. */
static int limit_memory(void)
{
	_cleanup_close_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[256] = "";
	unsigned long pages;
	struct rlimit limit;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
	    sscanf(text, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
		return -EIO;
	limit.rlim_max = limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + KEEPER_MEMORY;
	return setrlimit(RLIMIT_DATA, &limit) < 0 ? -errno : 0;
}

/* The numbers of what is kept, at fds; all else is closed. */
static int keep_only(int *const *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int fd = *fds[i];

		*fds[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
		if (fd >= 0 && *fds[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < n; i++) {
		if (*fds[i] < 0)
			continue;
		if (dup3(*fds[i], FIRST_FD + (int)i, O_CLOEXEC) < 0)
			return -errno;
		*fds[i] = FIRST_FD + (int)i;
	}
	/* Their numbers are taken, so that nothing else becomes one of the three. */
	if (dup2(FIRST_FD + 1, STDIN_FILENO) < 0 || dup2(STDIN_FILENO, STDOUT_FILENO) < 0 ||
	    close_range(FIRST_FD + (unsigned)n, ~0u, 0) < 0)
		return -errno;
	/* Those in between that nobody has. */
	for (size_t i = 0; i < n; i++)
		if (*fds[i] < 0)
			close(FIRST_FD + (int)i);
	return 0;
}

/* --- the keeper's places -----------------------------------------------------------------------
 */

static struct keeper_place places[KEEPER_PLACES];
static size_t nplaces;

static int add_place(const struct inside_worker *w, const char *path, const char *name, int lower)
{
	struct keeper_place *p = &places[nplaces];
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;

	if (nplaces == KEEPER_PLACES)
		return -E2BIG;
	*p = (struct keeper_place){.path = path, .lower_fd = lower};
	/* It may be somewhere else now: then nothing is brought back there. */
	p->write_fd = tree_open(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0,
				RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	p->scan_fd = name ? tree_open(w->box->data_fd, name, flags, 0, TREE_BENEATH)
			  : tree_open(AT_FDCWD, path, flags, 0,
				      RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	/* Closed to the box's user, and empty to it for good or until the next keeper. */
	if (p->scan_fd == -EACCES)
		return 0;
	if (p->scan_fd < 0)
		return p->scan_fd;
	nplaces++;
	return 0;
}

static int add_places(const struct inside_worker *w)
{
	const struct plan *plan = w->plan;
	int r = 0;

	for (size_t i = 0; i < plan->noverlays && r == 0; i++) {
		char name[16];

		if (i >= w->box->nlower || w->box->lower_fds[i] < 0)
			return -EBADF;
		snprintf(name, sizeof(name), "u%u", plan->overlays[i].index);
		r = add_place(w, plan->overlays[i].path, name, w->box->lower_fds[i]);
	}
	for (size_t i = 0; i < plan->nsteps && r == 0; i++) {
		const struct step *s = &plan->steps[i];

		/* The plan's targets are relative to the root, which is where we are. */
		if (s->type == STEP_WRITABLE || s->type == STEP_TMPFS) {
			char *path;

			if (asprintf(&path, "/%s", s->target) < 0)
				return -ENOMEM;
			r = add_place(w, path, s->type == STEP_WRITABLE ? s->content : NULL, -1);
		}
	}
	return r;
}

static int enter_box(const struct inside_worker *w, struct pale_err *err)
{
	int readable[KEEPER_PLACES + 1];
	size_t n = 0;

	if (w->keeper) {
		readable[n++] = w->box->data_fd;
		for (size_t i = 0; i < w->box->nlower && n < KEEPER_PLACES; i++)
			readable[n++] = w->box->lower_fds[i];
	}
	return isolation_enter(w->box, w->plan, readable, n, err);
}

static int confine(struct inside_worker *w, struct pale_err *err)
{
	const uint64_t most = w->plan->limits.file_size_bytes;
	static int *fds[2 + 3 * KEEPER_PLACES];
	size_t n = 0;
	struct stat st;
	int r;

	offer_first();
	r = w->keeper && !SANITIZED ? limit_memory() : 0;
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot limit its memory");
	r = w->join ? cgroup_join_beside(w->join) : 0;
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot join the box's groups");
	r = enter_box(w, err);
	if (r < 0)
		return r;
	/* Entering the box changed ids, which cleared the signal of our parent's death. */
	if (getppid() != w->parent)
		_exit(1);
	r = w->keeper ? add_places(w) : 0;
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot open the box's places");
	fds[n++] = &w->socket;
	fds[n++] = &w->memory;
	for (size_t i = 0; i < nplaces; i++) {
		fds[n++] = &places[i].scan_fd;
		fds[n++] = &places[i].write_fd;
		fds[n++] = &places[i].lower_fd;
	}
	r = keep_only(fds, n);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r,
			       "cannot close what it is not to have");
	signal(SIGXFSZ, SIG_IGN);
	umask(0);
	if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, most}) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot limit the size of files");
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open the box's root");
	has_proc = stat("/proc", &st) == 0;
	proc_dev = st.st_dev;
	data = mmap(NULL, INSIDE_DATA_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, w->memory, 0);
	if (data == MAP_FAILED)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot map its memory");
	r = worker_lock_files();
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot confine it") : 0;
}

void inside_worker(const struct inside_worker *given)
{
	struct inside_worker w = *given;
	struct inside_hello hello = {0};
	static struct inside_request q;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != w.parent)
		_exit(1);
	prctl(PR_SET_NAME, w.keeper ? "pale-keeper" : "pale-files");
	if (confine(&w, &hello.err) < 0) {
		(void)!write(w.socket, &hello, sizeof(hello));
		_exit(1);
	}
	if (write(w.socket, &hello, sizeof(hello)) != sizeof(hello))
		_exit(1);
	if (w.keeper)
		keeper_begin(places, nplaces);
	for (;;) {
		struct inside_reply reply = {0};
		struct inside_answer *a = &reply.answer;
		ssize_t n = read(w.socket, &q, sizeof(q));

		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(q))
			_exit(0);
		reply.number = q.number;
		a->error = -(w.keeper ? keeper_handle(&q, a, data) : handle(&q, a));
		if (write(w.socket, &reply, sizeof(reply)) != sizeof(reply))
			_exit(0);
		if (w.keeper)
			keeper_after(&q);
	}
}
