/* Collection of a `write` directory: see collect.h.
 *
 * Called by the supervisor when everything in the box is dead; the copying happens in a confined
 * child (worker.h) that may write beneath the destination only. The source is hostile. The
 * destination is the caller's directory, but another program may change it meanwhile: every step
 * goes from a directory that is held open, nothing is followed, and each file takes its name by one
 * rename. */
#include "files/collect.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/copy.h"
#include "base/links.h"
#include "files/walk.h"
#include "files/worker.h"

struct collect {
	int source_fd, dest_fd;
	int report_fd;
	uint64_t max_bytes;
	char *const *mounts;
	mode_t umask;
	uint64_t temporary; /* random, then counted up */
	struct walk walk;
	struct collect_report sum;
	struct pale_err *err;
};

static int refuse(struct collect *c, const char *why)
{
	int r = worker_note(c->report_fd, c->walk.path, why);

	c->sum.refused++;
	return r < 0 ? err_set(c->err, PALE_E_SYSTEM, "files", -r,
			       "reporting what was not collected")
		     : 0;
}

static int fail(struct collect *c, int r, const char *what)
{
	char name[128];

	str_escape_into(name, sizeof(name), c->walk.path, c->walk.path_len);
	return err_set(c->err, r == -ENOMEM ? PALE_E_NOMEM : PALE_E_SYSTEM, "files", -r,
		       "%s \"%s\"", what, name);
}

/* What is wrong with one entry is its own matter; what is wrong with the disk is everybody's. */
static int give_up(struct collect *c, int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
	case EROFS:
	case EIO:
	case ENOMEM: return fail(c, -error, "collecting");
	case EISDIR:
	case EEXIST:
	case ENOTEMPTY: return refuse(c, "a directory has that name on the host");
	case ENOTDIR:
	case ELOOP: return refuse(c, "something else than a directory has that name on the host");
	case EFBIG: return refuse(c, "too large for the host's file system");
	case EMFILE:
	case ENFILE: return refuse(c, "it lies too deep");
	default: return refuse(c, strerror(error));
	}
}

static void temporary_name(struct collect *c, char out[static 40])
{
	snprintf(out, 40, ".pale-collect-%016" PRIx64, c->temporary++);
}

static bool is_mount(const struct collect *c)
{
	for (char *const *m = c->mounts; m && *m; m++)
		if (strcmp(*m, c->walk.path) == 0)
			return true;
	return false;
}

/* Is the current directory, of path_len, on the way to a mount? Then it may be of our making. */
static bool leads_to_mount(const struct collect *c)
{
	for (char *const *m = c->mounts; m && *m; m++)
		if (strncmp(*m, c->walk.path, c->walk.path_len) == 0 &&
		    (*m)[c->walk.path_len] == '/')
			return true;
	return false;
}

static int collect_dir(struct collect *c, const struct walk_level *l, const struct stat *st)
{
	int fd = fd_open_beneath(l->fd, c->walk.name, O_RDONLY | O_DIRECTORY, 0), other, r;

	if (fd < 0)
		return give_up(c, -fd);
	if (walk_too_long(&c->walk)) {
		close(fd);
		return refuse(c, "a path too long to go on");
	}
	/* Writable for us until the directory is left. */
	r = mkdirat(l->other, c->walk.name, (st->st_mode & 0777 & ~c->umask) | 0700) < 0 ? -errno
											 : 1;
	other = r < 0 && r != -EEXIST
			? r
			: fd_open_beneath(l->other, c->walk.name, O_RDONLY | O_DIRECTORY, 0);
	if (other < 0) {
		close(fd);
		return give_up(c, -other);
	}
	c->sum.directories += r == 1;
	r = walk_enter(&c->walk, fd, other, r == 1, st);
	return r < 0 ? fail(c, r, "reading the directory") : 0;
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A directory that was made here gets its times and mode when its entries are in it. */
static void leave_dir(struct collect *c, struct walk_level *l)
{
	struct timespec times[2] = {l->st.st_atim, l->st.st_mtim};
	bool made = l->flags;

	if (made) {
		fchmod(l->other, l->st.st_mode & 0777 & ~c->umask);
		futimens(l->other, times);
	}
	walk_leave(&c->walk);
	/* Nothing but the way to a mount: fails where there is more. The path is now the
	 * directory's own, and its name the end of it. */
	if (made && c->walk.depth && leads_to_mount(c) &&
	    unlinkat(c->walk.levels[c->walk.depth - 1].other, last_name(c->walk.path),
		     AT_REMOVEDIR) == 0)
		c->sum.directories--;
}

static int collect_symlink(struct collect *c, const struct walk_level *l)
{
	char target[4097], temporary[40];
	ssize_t n = readlinkat(l->fd, c->walk.name, target, sizeof(target));

	if (n < 0)
		return give_up(c, errno);
	if (n == 0 || n == (ssize_t)sizeof(target))
		return refuse(c, "the link's target is too long");
	target[n] = '\0';
	if (link_leads_out(c->walk.path, target))
		return refuse(c, "a link that leads out of the directory");
	temporary_name(c, temporary);
	if (symlinkat(target, l->other, temporary) < 0)
		return give_up(c, errno);
	if (renameat2(l->other, temporary, l->other, c->walk.name, 0) < 0) {
		int error = errno;

		unlinkat(l->other, temporary, 0);
		return give_up(c, error);
	}
	c->sum.links++;
	return 0;
}

/* The content and its attributes, into a file that has no other name yet. A negative errno. */
static int fill_file(struct collect *c, int from, int to, const struct stat *st)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	int64_t n = copy_range(from, 0, to, 0, st->st_size, c->max_bytes - c->sum.bytes, NULL);

	if (n < 0)
		return (int)n;
	if (n < st->st_size && ftruncate(to, st->st_size) < 0)
		return -errno;
	c->sum.bytes += (uint64_t)n;
	if (fchmod(to, st->st_mode & 0777 & ~c->umask) < 0 || futimens(to, times) < 0)
		return -errno;
	return 0;
}

static int collect_file(struct collect *c, const struct walk_level *l)
{
	_cleanup_close_ int from =
		fd_open_beneath(l->fd, c->walk.name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	_cleanup_close_ int to = -1;
	char temporary[40];
	struct stat st;
	int r;

	if (from < 0)
		return give_up(c, -from);
	if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return refuse(c, "it changed while it was read");
	temporary_name(c, temporary);
	to = fd_open_beneath(l->other, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (to < 0)
		return give_up(c, -to);
	r = fill_file(c, from, to, &st);
	if (r == 0 && renameat2(l->other, temporary, l->other, c->walk.name, 0) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(l->other, temporary, 0);
	if (r == -EFBIG)
		return refuse(c, "more than the size that may be collected");
	if (r < 0)
		return give_up(c, -r);
	c->sum.files++;
	if (st.st_mode & (S_ISUID | S_ISGID))
		return refuse(c, "its setuid or setgid bit (the rest was collected)");
	return 0;
}

static int collect_entry(struct collect *c, const struct walk_level *l)
{
	struct stat st;

	if (is_mount(c))
		return 0;
	if (fstatat(l->fd, c->walk.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return give_up(c, errno);
	if (S_ISDIR(st.st_mode))
		return collect_dir(c, l, &st);
	if (S_ISLNK(st.st_mode))
		return collect_symlink(c, l);
	if (S_ISREG(st.st_mode))
		return collect_file(c, l);
	return refuse(c, S_ISFIFO(st.st_mode)	? "a FIFO"
			 : S_ISSOCK(st.st_mode) ? "a socket"
						: "a device");
}

static int collect_work(void *arg, int report_fd, void *payload, struct pale_err *err)
{
	struct collect *c = arg;
	struct walk_level *l;
	struct stat st;
	int from = fd_openat2(c->source_fd, ".", O_RDONLY | O_DIRECTORY, 0, 0);
	int to = fd_openat2(c->dest_fd, ".", O_RDONLY | O_DIRECTORY, 0, 0), r;

	c->report_fd = report_fd;
	c->err = err;
	c->umask = worker_umask();
	if (from < 0 || to < 0 || fstat(from, &st) < 0)
		return fail(c,
			    from < 0 ? from
			    : to < 0 ? to
				     : -errno,
			    "opening the directories of");
	r = walk_enter(&c->walk, from, to, 0, &st);
	if (r < 0)
		return fail(c, r, "reading the directory");
	while (r >= 0 && c->walk.depth) {
		r = walk_next(&c->walk, &l);
		if (r == 1)
			r = collect_entry(c, l);
		else if (r == 0)
			leave_dir(c, l);
	}
	_Static_assert(sizeof(c->sum) <= WORKER_PAYLOAD, "the report fits");
	memcpy(payload, &c->sum, sizeof(c->sum));
	return r;
}

/* The path was without links when the plan was made. A descriptor or a negative errno. */
static int open_destination(const char *dest)
{
	_cleanup_free_ char *parent = strdup(dest);
	_cleanup_close_ int dir = -1;
	char *slash = parent ? strrchr(parent, '/') : NULL;

	if (!parent)
		return -ENOMEM;
	if (!slash)
		return -EINVAL;
	*slash = '\0';
	dir = fd_openat2(AT_FDCWD, *parent ? parent : "/", O_RDONLY | O_DIRECTORY, 0,
			 RESOLVE_NO_SYMLINKS);
	if (dir < 0)
		return dir;
	if (slash[1] && mkdirat(dir, slash + 1, 0755) < 0 && errno != EEXIST)
		return -errno;
	return fd_openat2(dir, slash[1] ? slash + 1 : ".", O_RDONLY | O_DIRECTORY, 0,
			  RESOLVE_NO_SYMLINKS);
}

int collect_tree(int source_fd, int userns_fd, const char *dest, uint64_t max_bytes,
		 char *const *mounts, collect_refusal *refused, void *arg,
		 struct collect_report *ret, struct pale_err *err)
{
	_cleanup_free_ struct collect *c = calloc(1, sizeof(*c));
	_cleanup_close_ int dest_fd = -1;
	_Alignas(8) char payload[WORKER_PAYLOAD];
	struct worker w;
	int r;

	if (!c)
		return err_nomem(err, "files");
	dest_fd = open_destination(dest);
	if (dest_fd < 0)
		return err_set(err, PALE_E_SYSTEM, "files", dest_fd == -ELOOP ? 0 : -dest_fd,
			       dest_fd == -ELOOP
				       ? "a symbolic link has come into the path of %s, which is "
					 "collected into"
				       : "opening %s to collect into",
			       QUOTED(dest));
	*c = (struct collect){.source_fd = source_fd,
			      .dest_fd = dest_fd,
			      .max_bytes = max_bytes,
			      .mounts = mounts};
	if (getrandom(&c->temporary, sizeof(c->temporary), 0) != sizeof(c->temporary))
		return err_set(err, PALE_E_SYSTEM, "files", errno, "getting a random number");
	w = (struct worker){
		.userns_fd = userns_fd,
		.read_dirs = {source_fd, -1},
		.write_dir = dest_fd,
		.fds = {-1, -1, -1, -1, -1, -1, -1, -1},
		.work = collect_work,
		.arg = c,
		.note = refused,
		.note_arg = arg,
	};
	r = worker_run(&w, payload, err);
	if (r < 0)
		return r;
	memcpy(ret, payload, sizeof(*ret));
	return 0;
}
