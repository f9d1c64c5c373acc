/* The state directory: found, made, and refused where it cannot be trusted.
 *
 * Runs in the caller's process with the caller's privileges, before any box exists. The environment
 * is the caller's own. What is checked is the directory itself: a link, another owner or write
 * permission for others would let somebody else put a log in place or take one away. Below it only
 * its owner can write, so everything there is opened by descriptor and without following links. */
#include "state.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/ulid.h"
#include "base/fd.h"
#include "base/str.h"

#define STAGE "audit"

/* The home directory from /etc/passwd: the command is static, so there is no NSS. */
static int home_of(uid_t uid, char *out, size_t size)
{
	_cleanup_file_ FILE *f = fopen("/etc/passwd", "re");

	for (struct passwd *p; f && (p = fgetpwent(f));)
		if (p->pw_uid == uid && p->pw_dir[0] == '/')
			return snprintf(out, size, "%s", p->pw_dir) < (int)size ? 0 : -ENAMETOOLONG;
	return -ENOENT;
}

static int state_path(char *out, size_t size, struct pale_err *err)
{
	const char *own = getenv("PALE_STATE_DIR"), *xdg = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	char from_passwd[2048];
	int n;

	if (own && *own) {
		if (own[0] != '/')
			return err_set(err, PALE_E_USAGE, STAGE, 0,
				       "PALE_STATE_DIR is %s: it must be an absolute path",
				       QUOTED(own));
		n = snprintf(out, size, "%s", own);
	} else if (geteuid() == 0) {
		n = snprintf(out, size, "/var/lib/pale");
	} else if (xdg && xdg[0] == '/') {
		n = snprintf(out, size, "%s/pale", xdg);
	} else {
		if (!home || home[0] != '/') {
			if (home_of(geteuid(), from_passwd, sizeof(from_passwd)) < 0)
				return err_set(
					err, PALE_E_AUDIT, STAGE, 0,
					"no place for the audit log: HOME is not set and user %u "
					"is not in /etc/passwd; set PALE_STATE_DIR",
					geteuid());
			home = from_passwd;
		}
		n = snprintf(out, size, "%s/.local/state/pale", home);
	}
	if (n < 0 || (size_t)n >= size)
		return err_set(err, PALE_E_AUDIT, STAGE, ENAMETOOLONG,
			       "the state directory's path");
	while (n > 1 && out[n - 1] == '/')
		out[--n] = '\0';
	return 0;
}

/* Refuses what others could have put there or could change. */
static int check_dir(int fd, const char *path, struct pale_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, PALE_E_AUDIT, STAGE, errno, "looking at %s", QUOTED(path));
	if (st.st_uid != geteuid())
		return err_set(
			err, PALE_E_AUDIT, STAGE, 0,
			"the state directory %s belongs to user %u, not to you (%u): an audit log "
			"there could be changed; set PALE_STATE_DIR to a directory of your own",
			QUOTED(path), st.st_uid, geteuid());
	if (st.st_mode & 022)
		return err_set(
			err, PALE_E_AUDIT, STAGE, 0,
			"others may write to the state directory %s (mode %04o): an audit log "
			"there could be changed; remedy: chmod go-w on it",
			QUOTED(path), st.st_mode & 07777u);
	return 0;
}

static int open_dir_at(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* mkdir -p, each new directory private. */
static int make_path(char *path)
{
	for (char *p = path + 1;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = '\0';
		int r = mkdir(path, 0700) < 0 ? -errno : 0;

		*p = c;
		if (r < 0 && r != -EEXIST && access(path, F_OK) < 0)
			return r;
		if (!c)
			return 0;
	}
}

int audit_state_dir(char *ret_path, size_t size, struct pale_err *err)
{
	char path[4096];
	int r = state_path(path, sizeof(path), err);

	if (r < 0)
		return r;
	if (ret_path && snprintf(ret_path, size, "%s", path) >= (int)size)
		return err_set(err, PALE_E_AUDIT, STAGE, ENAMETOOLONG, "the state directory %s",
			       QUOTED(path));
	_cleanup_close_ int fd = open_dir_at(AT_FDCWD, path);

	if (fd == -ENOENT) {
		r = make_path(path);
		if (r < 0)
			return err_set(
				err, PALE_E_AUDIT, STAGE, -r,
				"making the state directory %s (PALE_STATE_DIR chooses another)",
				QUOTED(path));
		fd = open_dir_at(AT_FDCWD, path);
	}
	if (fd == -ELOOP || fd == -ENOTDIR)
		return err_set(
			err, PALE_E_AUDIT, STAGE, 0,
			"the state directory %s is a symbolic link or no directory: it could be "
			"exchanged; set PALE_STATE_DIR to the real directory",
			QUOTED(path));
	if (fd < 0)
		return err_set(err, PALE_E_AUDIT, STAGE, -fd,
			       "opening the state directory %s (PALE_STATE_DIR chooses another)",
			       QUOTED(path));
	r = check_dir(fd, path, err);
	return r < 0 ? r : take_fd(&fd);
}

static int open_sub(const struct audit_state *s, const char *name, struct pale_err *err)
{
	char path[4200];
	int fd = open_dir_at(s->dir, name);

	if (fd == -ENOENT) {
		if (mkdirat(s->dir, name, 0700) < 0 && errno != EEXIST)
			return err_set(err, PALE_E_AUDIT, STAGE, errno, "making %s in %s", name,
				       QUOTED(s->path));
		fd = open_dir_at(s->dir, name);
	}
	if (fd < 0)
		return err_set(err, PALE_E_AUDIT, STAGE, -fd, "opening %s in %s", name,
			       QUOTED(s->path));
	snprintf(path, sizeof(path), "%s/%s", s->path, name);
	int r = check_dir(fd, path, err);

	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

void audit_state_done(struct audit_state *s)
{
	close_fd(&s->dir);
	close_fd(&s->runs);
	close_fd(&s->active);
}

int audit_state_open(struct audit_state *ret, struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;

	s.dir = audit_state_dir(s.path, sizeof(s.path), err);
	if (s.dir < 0)
		return s.dir;
	s.runs = open_sub(&s, "runs", err);
	if (s.runs < 0)
		return s.runs;
	s.active = open_sub(&s, "active", err);
	if (s.active < 0)
		return s.active;
	*ret = s;
	s = AUDIT_STATE_NONE;
	return 0;
}

int audit_state_run(const struct audit_state *s, const char *id, int flags, int *ret_dir,
		    int *ret_log, struct pale_err *err)
{
	struct stat st;

	if (!ulid_valid(id))
		return err_set(err, PALE_E_USAGE, STAGE, 0, "%s is no id of a run", QUOTED(id));
	_cleanup_close_ int dir = open_dir_at(s->runs, id);

	if (dir == -ENOENT)
		return err_set(err, PALE_E_NOTFOUND, STAGE, 0, "no run %s in %s", id,
			       QUOTED(s->path));
	if (dir < 0)
		return err_set(err, PALE_E_AUDIT, STAGE, -dir, "opening the directory of run %s",
			       id);
	if (ret_log) {
		_cleanup_close_ int log =
			openat(dir, AUDIT_LOG_NAME, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

		if (log < 0)
			return err_set(err, errno == ENOENT ? PALE_E_NOTFOUND : PALE_E_AUDIT, STAGE,
				       errno, "opening the log of run %s", id);
		if (fstat(log, &st) < 0 || !S_ISREG(st.st_mode))
			return err_set(err, PALE_E_AUDIT, STAGE, 0,
				       "the log of run %s is not a regular file", id);
		*ret_log = take_fd(&log);
	}
	if (ret_dir)
		*ret_dir = take_fd(&dir);
	return 0;
}

int audit_state_open_log(const char *id, struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	int log = -1, r = audit_state_open(&s, err);

	if (r == 0)
		r = audit_state_run(&s, id, O_RDONLY, NULL, &log, err);
	return r < 0 ? r : log;
}

static int by_name(const void *a, const void *b)
{
	return memcmp(a, b, AUDIT_ID_SIZE);
}

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

static int list_ids(int at, char (**ret)[AUDIT_ID_SIZE], size_t *ret_n)
{
	_cleanup_free_ char(*ids)[AUDIT_ID_SIZE] = NULL;
	size_t n = 0, room = 0;
	int fd = open_dir_at(at, ".");
	_cleanup_(close_dir) DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		return fd < 0 ? fd : -errno;
	for (struct dirent *e; errno = 0, (e = readdir(d));) {
		if (!ulid_valid(e->d_name))
			continue;
		if (n == room) {
			room = room ? room * 2 : 64;
			void *more = reallocarray(ids, room, AUDIT_ID_SIZE);

			if (!more)
				return -ENOMEM;
			ids = more;
		}
		memcpy(ids[n++], e->d_name, AUDIT_ID_SIZE);
	}
	if (errno)
		return -errno;
	if (n)
		qsort(ids, n, AUDIT_ID_SIZE, by_name);
	*ret = take_ptr(ids);
	*ret_n = n;
	return 0;
}

int audit_state_list(const struct audit_state *s, char (**ret)[AUDIT_ID_SIZE], size_t *ret_n,
		     struct pale_err *err)
{
	int r = list_ids(s->runs, ret, ret_n);

	return r < 0 ? err_set(err, PALE_E_AUDIT, STAGE, -r, "reading the list of runs") : 0;
}

int audit_state_list_active(const struct audit_state *s, char (**ret)[AUDIT_ID_SIZE], size_t *ret_n)
{
	return list_ids(s->active, ret, ret_n);
}

int audit_lock(int log_fd, bool wait)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int r;

	do
		r = fcntl(log_fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &l);
	while (r < 0 && errno == EINTR);
	return r == 0 ? 0 : errno == EACCES ? -EAGAIN : -errno;
}

bool audit_locked(int log_fd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(log_fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}
