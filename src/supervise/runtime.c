/* The runtime directory: see runtime.h. Runs in the supervisor, in the commands that look for a box
 * and in the recovery of lost runs, with the caller's privileges, and for boxes with a network
 * only. The environment is the caller's own; the directories may be somebody else's trap: nothing
 * is followed, and owner and mode are looked at on the descriptor that is then used. */
#include "supervise/runtime.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "audit/audit.h"
#include "audit/state.h"
#include "base/helper.h"
#include "base/str.h"

#define STAGE	  "supervise"
#define ROOT_RUN  "/run"
#define OUR_NAME  "pale"
#define STATE_RUN "run" /* in the state directory */

const char *runtime_socket_name(int dir, char out[static RUNTIME_NAME_SIZE])
{
	snprintf(out, RUNTIME_NAME_SIZE, "/proc/self/fd/%d/" RUNTIME_SOCKET, dir);
	return out;
}

static int open_dir(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Is it the caller's, and closed (alone), or at least not to be written to by others? */
static int check(int fd, const char *path, bool alone, struct pale_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, PALE_E_HOST, STAGE, errno, "looking at %s", QUOTED(path));
	if (st.st_uid != geteuid())
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "%s belongs to user %u, not to you (%u): the control socket of a "
			       "box cannot be put there; remove it, or set XDG_RUNTIME_DIR to a "
			       "directory of your own",
			       QUOTED(path), st.st_uid, geteuid());
	if (st.st_mode & (alone ? 077 : 022))
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "%s is open to others (mode %04o): the control socket of a box "
			       "cannot be put there; remedy: chmod %s on it",
			       QUOTED(path), st.st_mode & 07777u, alone ? "700" : "go-w");
	return 0;
}

static int refuse(const char *path, int sys, struct pale_err *err)
{
	if (sys == ELOOP || sys == ENOTDIR)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "%s is not a directory (a symbolic link is none): the control "
			       "socket of a box cannot be put there; remove it",
			       QUOTED(path));
	return err_set(err, PALE_E_HOST, STAGE, sys,
		       "cannot make a place for the box's control socket: %s", QUOTED(path));
}

/* The machine's or the user's own place for such things: a descriptor, or -ENOENT: there is none
 * (no session, no /run in this container), and the state directory has to do. */
static int open_base(char path[static RUNTIME_PATH_SIZE], struct pale_err *err)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	int n, fd, r;

	if (geteuid() == 0)
		xdg = ROOT_RUN;
	else if (!xdg || !*xdg)
		return -ENOENT;
	if (*xdg != '/')
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "XDG_RUNTIME_DIR is %s: it must be an absolute path", QUOTED(xdg));
	n = snprintf(path, RUNTIME_PATH_SIZE, "%s", xdg);
	if (n >= RUNTIME_PATH_SIZE)
		return refuse(xdg, ENAMETOOLONG, err);
	fd = open_dir(AT_FDCWD, path);
	if (fd == -ENOENT)
		return -ENOENT;
	if (fd < 0)
		return refuse(path, -fd, err);
	r = check(fd, path, false, err);
	if (r < 0)
		close_fd(&fd);
	return r < 0 ? r : fd;
}

/* A directory in one that is ours: made if need be, and then looked at. */
static int open_own(int at, const char *name, const char *path, struct pale_err *err)
{
	int fd, r = mkdirat(at, name, 0700) < 0 && errno != EEXIST ? -errno : 0;

	if (r == -EROFS || r == -EACCES)
		return r;
	fd = r < 0 ? r : open_dir(at, name);
	if (fd < 0)
		return refuse(path, -fd, err);
	/* Root's is open to be looked at: the ranges of user ids are there, too. */
	r = check(fd, path, false, err);
	if (r < 0)
		close_fd(&fd);
	return r < 0 ? r : fd;
}

static int add_name(char path[static RUNTIME_PATH_SIZE], const char *name, struct pale_err *err)
{
	size_t len = strlen(path);

	if (snprintf(path + len, RUNTIME_PATH_SIZE - len, "/%s", name) <
	    (int)(RUNTIME_PATH_SIZE - len))
		return 0;
	path[len] = '\0';
	return refuse(path, ENAMETOOLONG, err);
}

/* The directory of all boxes' directories. */
static int open_parent(char path[static RUNTIME_PATH_SIZE], struct pale_err *err)
{
	_cleanup_close_ int base = open_base(path, err), state = -1;
	int r;

	if (base < 0 && base != -ENOENT)
		return base;
	if (base >= 0) {
		r = add_name(path, OUR_NAME, err);
		if (r == 0)
			r = open_own(base, OUR_NAME, path, err);
		/* A container whose /run is not to be written to. */
		if (r != -EROFS && r != -EACCES)
			return r;
	}
	state = audit_state_dir(path, RUNTIME_PATH_SIZE, err);
	if (state < 0)
		return state;
	r = add_name(path, STATE_RUN, err);
	if (r == 0)
		r = open_own(state, STATE_RUN, path, err);
	return r == -EROFS || r == -EACCES ? refuse(path, -r, err) : r;
}

/* An id is never used twice: what is there already was put there, and stays. */
static int make_own(struct runtime *r, struct pale_err *err)
{
	if (mkdirat(r->parent, r->id, 0700) < 0) {
		int sys = errno;

		close_fd(&r->parent);
		if (sys != EEXIST)
			return refuse(r->path, sys, err);
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "%s is there already: the control socket of a new box cannot be "
			       "put there; remove it",
			       QUOTED(r->path));
	}
	r->dir = open_dir(r->parent, r->id);
	return r->dir < 0 ? refuse(r->path, -r->dir, err) : check(r->dir, r->path, true, err);
}

int runtime_make(const char *id, int run_fd, struct runtime *ret, struct pale_err *err)
{
	struct runtime r = RUNTIME_NONE;
	int e;

	r.parent = open_parent(r.path, err);
	if (r.parent < 0)
		return r.parent;
	snprintf(r.id, sizeof(r.id), "%s", id);
	e = add_name(r.path, id, err);
	/* Before the directory is there, so that it is found whenever we are killed. */
	if (e == 0 && symlinkat(r.path, run_fd, RUNTIME_LINK) < 0)
		e = err_set(err, PALE_E_AUDIT, STAGE, errno,
			    "noting where the box's control socket is");
	if (e < 0) {
		close_fd(&r.parent);
		return e;
	}
	r.run = run_fd;
	e = make_own(&r, err);
	if (e < 0)
		runtime_done(&r);
	else
		*ret = r;
	return e;
}

/* Nobody comes back for what stays: once more, where the disk or the kernel had a bad moment. */
static int remove_name(int dir, const char *name, int flags)
{
	for (int tries = 0; unlinkat(dir, name, flags) < 0; tries++)
		if (errno == ENOENT || tries == 2)
			return -errno;
	return 0;
}

/* Whoever lets go of a directory last waits for the disk to forget it: 2 ms on ext4. */
static int remove_directory(void *arg)
{
	const struct runtime *r = arg;
	int e = remove_name(r->parent, r->id, AT_REMOVEDIR);

	if (r->going >= 0)
		close(r->going);
	return e;
}

static bool on_disk(int dir)
{
	struct statfs fs;

	return fstatfs(dir, &fs) == 0 && fs.f_type != TMPFS_MAGIC;
}

void runtime_remove(struct runtime *r)
{
	/* First: whoever follows the link finds the directory. */
	if (r->run >= 0)
		(void)remove_name(r->run, RUNTIME_LINK, 0);
	r->run = -1;
	if (r->parent < 0 || r->going >= 0)
		return;
	if (r->dir >= 0)
		(void)remove_name(r->dir, RUNTIME_SOCKET, 0);
	r->going = r->dir;
	r->dir = -1;
	if (r->going >= 0 && on_disk(r->going))
		r->helper = malloc(sizeof(*r->helper));
	if (r->helper && helper_start(r->helper, remove_directory, r) < 0) {
		free(r->helper);
		r->helper = NULL;
	}
	if (!r->helper)
		(void)remove_directory(r);
}

void runtime_done(struct runtime *r)
{
	runtime_remove(r);
	if (r->helper)
		(void)helper_wait(r->helper);
	free(r->helper);
	close_fd(&r->parent);
	*r = RUNTIME_NONE;
}

/* Where the link leads: 0, or PALE_E_NOTFOUND. */
static int read_link(const char *id, int run_fd, char path[static RUNTIME_PATH_SIZE],
		     struct pale_err *err)
{
	ssize_t n = readlinkat(run_fd, RUNTIME_LINK, path, RUNTIME_PATH_SIZE - 1);

	if (n < 0 && errno == ENOENT)
		return err_set(err, PALE_E_NOTFOUND, STAGE, 0,
			       "run %s has no control socket: it has ended, or its policy allows "
			       "no network",
			       id);
	if (n < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "looking for the control socket of run %s", id);
	path[n] = '\0';
	/* The last part is what its owner made of it, so nobody else's directory is meant. */
	if (n == RUNTIME_PATH_SIZE - 1 || path[0] != '/' || !str_ends(path, id))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "the link to the control socket of run %s was altered", id);
	return 0;
}

int runtime_open(const char *id, int run_fd, struct pale_err *err)
{
	char path[RUNTIME_PATH_SIZE];
	int fd, r = read_link(id, run_fd, path, err);

	if (r < 0)
		return r;
	fd = open_dir(AT_FDCWD, path);
	if (fd == -ENOENT)
		return err_set(err, PALE_E_NOTFOUND, STAGE, 0,
			       "the control socket of run %s is gone", id);
	if (fd < 0)
		return refuse(path, -fd, err);
	r = check(fd, path, true, err);
	if (r < 0)
		close_fd(&fd);
	return r < 0 ? r : fd;
}

int runtime_clean(const char *id, struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	_cleanup_close_ int run = -1, dir = -1;
	char path[RUNTIME_PATH_SIZE];
	int r = audit_state_open(&s, err);

	if (r == 0)
		r = audit_state_run(&s, id, 0, &run, NULL, err);
	if (r < 0)
		return r == -PALE_E_NOTFOUND ? 0 : r;
	/* Only what is the caller's alone: anything else is not what was left, and none of that
	 * must keep the run from being closed. */
	dir = read_link(id, run, path, NULL) < 0 ? -1 : open_dir(AT_FDCWD, path);
	if (dir >= 0 && check(dir, path, true, NULL) == 0) {
		(void)remove_name(dir, RUNTIME_SOCKET, 0);
		(void)remove_name(AT_FDCWD, path, AT_REMOVEDIR);
	}
	unlinkat(run, RUNTIME_LINK, 0);
	return 0;
}
