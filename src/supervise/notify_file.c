/* File accesses of the box that will fail because of the box: what it does not show, or shows
 * read-only.
 *
 * In the supervisor. The path, the working directory and the descriptors are hostile, and can
 * change after they were read; nothing is decided here, only told. The kernel is asked what it
 * would say: the path is looked up beneath the box's root with O_PATH (no open has an effect, no
 * FIFO waits), and as the user of the process, so that permissions count as they will. An ordinary
 * ENOENT is silent, unless the path exists on the host (in a local file system: notify_mounts.c):
 * then it is the box that took it away.
 *
 * Not seen: what only Landlock refuses (it repeats the mounts), paths below /proc (its links are
 * the reader's own) and /dev, and the root directory of a process that has changed it. */
#include "supervise/notify_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/str.h"

#ifndef AT_EACCESS
#define AT_EACCESS 0x200
#endif

#define NONE (-1)

struct file_call {
	int nr;
	enum notify_op op;
	int8_t dirfd, path, flags; /* which argument; NONE: the working directory; no flags */
};

static const struct file_call calls[] = {
	{SYS_openat, NOTIFY_OP_READ, 0, 1, 2},
	{SYS_openat2, NOTIFY_OP_READ, 0, 1, 2},
	{SYS_execve, NOTIFY_OP_EXEC, NONE, 0, NONE},
	{SYS_execveat, NOTIFY_OP_EXEC, 0, 1, NONE},
	{SYS_mkdirat, NOTIFY_OP_CREATE, 0, 1, NONE},
	{SYS_mknodat, NOTIFY_OP_CREATE, 0, 1, NONE},
	{SYS_symlinkat, NOTIFY_OP_CREATE, 1, 2, NONE},
	{SYS_linkat, NOTIFY_OP_CREATE, 2, 3, NONE},
	{SYS_unlinkat, NOTIFY_OP_REMOVE, 0, 1, NONE},
	{SYS_renameat2, NOTIFY_OP_REMOVE, 0, 1, NONE},
	{SYS_renameat2, NOTIFY_OP_CREATE, 2, 3, NONE},
	{SYS_renameat, NOTIFY_OP_REMOVE, 0, 1, NONE},
	{SYS_renameat, NOTIFY_OP_CREATE, 2, 3, NONE},
	{SYS_truncate, NOTIFY_OP_WRITE, NONE, 0, NONE},
	{SYS_fchmodat, NOTIFY_OP_CHANGE, 0, 1, NONE},
	{452 /* fchmodat2 */, NOTIFY_OP_CHANGE, 0, 1, NONE},
	{SYS_fchownat, NOTIFY_OP_CHANGE, 0, 1, NONE},
	{SYS_utimensat, NOTIFY_OP_CHANGE, 0, 1, NONE},
	{SYS_setxattr, NOTIFY_OP_CHANGE, NONE, 0, NONE},
	{SYS_lsetxattr, NOTIFY_OP_CHANGE, NONE, 0, NONE},
	{SYS_removexattr, NOTIFY_OP_CHANGE, NONE, 0, NONE},
	{SYS_lremovexattr, NOTIFY_OP_CHANGE, NONE, 0, NONE},
	{463 /* setxattrat */, NOTIFY_OP_CHANGE, 0, 1, NONE},
	{466 /* removexattrat */, NOTIFY_OP_CHANGE, 0, 1, NONE},
#ifdef SYS_open
	{SYS_open, NOTIFY_OP_READ, NONE, 0, 1},
	{SYS_creat, NOTIFY_OP_WRITE, NONE, 0, NONE},
	{SYS_mkdir, NOTIFY_OP_CREATE, NONE, 0, NONE},
	{SYS_mknod, NOTIFY_OP_CREATE, NONE, 0, NONE},
	{SYS_symlink, NOTIFY_OP_CREATE, NONE, 1, NONE},
	{SYS_link, NOTIFY_OP_CREATE, NONE, 1, NONE},
	{SYS_unlink, NOTIFY_OP_REMOVE, NONE, 0, NONE},
	{SYS_rmdir, NOTIFY_OP_REMOVE, NONE, 0, NONE},
	{SYS_rename, NOTIFY_OP_REMOVE, NONE, 0, NONE},
	{SYS_rename, NOTIFY_OP_CREATE, NONE, 1, NONE},
	{SYS_chmod, NOTIFY_OP_CHANGE, NONE, 0, NONE},
	{SYS_chown, NOTIFY_OP_CHANGE, NONE, 0, NONE},
	{SYS_lchown, NOTIFY_OP_CHANGE, NONE, 0, NONE},
	{SYS_utime, NOTIFY_OP_CHANGE, NONE, 0, NONE},
	{SYS_utimes, NOTIFY_OP_CHANGE, NONE, 0, NONE},
	{SYS_futimesat, NOTIFY_OP_CHANGE, 0, 1, NONE},
#endif
};

struct lookup {
	int root;   /* borrowed */
	char *path; /* absolute, in the box; cut up and restored while the parent is looked at */
	enum notify_op op;
	uint64_t flags; /* of an open */
};

/* The absolute path as the box has it, from its working directory or descriptor if need be. */
static int absolute(const struct notify_call *call, const struct file_call *f, char *ret,
		    size_t size)
{
	uint64_t at = call->args[f->path];
	size_t used = 0;
	ssize_t n;
	char first;
	bool cut;

	if (!at)
		return -EFAULT;
	if (notify_read(call->pid, at, &first, 1) < 0)
		return -EFAULT;
	if (first != '/') {
		char link[32] = "cwd";
		int dirfd = f->dirfd == NONE ? AT_FDCWD : (int)call->args[f->dirfd];

		if (!first)
			return -ENOENT; /* AT_EMPTY_PATH: a descriptor that it already has */
		if (dirfd != AT_FDCWD)
			snprintf(link, sizeof(link), "fd/%d", dirfd);
		n = notify_read_link(call->pid, link, ret, size - 2);
		if (n <= 0 || ret[0] != '/')
			return -ENOENT;
		used = (size_t)n;
		ret[used++] = '/';
	}
	n = notify_read_string(call->pid, at, ret + used,
			       size - used < PATH_MAX ? size - used : PATH_MAX, &cut);
	return n < 0 ? (int)n : cut ? -ENAMETOOLONG : 0;
}

static int look(const struct lookup *l, const char *path, bool follow)
{
	return fd_openat2(l->root, path, O_PATH | (follow ? 0 : O_NOFOLLOW), 0, RESOLVE_IN_ROOT);
}

/* 0, or the errno if it is one with which the box refuses. */
static int access_errno(int fd, int mode)
{
	if (syscall(SYS_faccessat2, fd, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0)
		return 0;
	return errno == EACCES || errno == EPERM || errno == EROFS ? errno : 0;
}

static bool read_only(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

/* May a name be made or removed in the directory of the path? *ret_missing: that directory is not
 * there, and l->path is cut to it. */
static int parent_errno(struct lookup *l, bool *ret_missing)
{
	_cleanup_close_ int fd = -1;
	size_t len = strlen(l->path);
	char *slash;
	int error;

	while (len > 1 && l->path[len - 1] == '/')
		l->path[--len] = 0;
	slash = strrchr(l->path, '/');
	if (!slash || len <= 1)
		return 0;
	*slash = 0;
	fd = look(l, slash == l->path ? "/" : l->path, true);
	/* The kernel asks the mount first, then the permissions. */
	error = fd < 0 ? -fd : read_only(fd) ? EROFS : access_errno(fd, W_OK | X_OK);
	if (error == ENOENT) {
		*ret_missing = true;
		return 0;
	}
	*slash = '/';
	return error == EACCES || error == EPERM || error == EROFS ? error : 0;
}

static bool creates(const struct lookup *l)
{
	return l->op == NOTIFY_OP_CREATE || (l->flags & O_CREAT);
}

/* What the box's refusal will be: an errno, or 0 for none; -1: absent, ask the host. */
static int predict(struct lookup *l)
{
	bool opens = l->op == NOTIFY_OP_READ || l->op == NOTIFY_OP_WRITE;
	bool follow = l->op == NOTIFY_OP_EXEC || (opens && !(l->flags & O_NOFOLLOW));
	_cleanup_close_ int fd = look(l, l->path, follow);
	bool missing = false;
	int error, mode;

	if (fd < 0 && fd != -ENOENT)
		return fd == -EACCES || fd == -EPERM ? -fd : 0;
	if (fd < 0 && !creates(l))
		return -1;
	if (fd < 0 || l->op == NOTIFY_OP_REMOVE) {
		error = parent_errno(l, &missing);
		return missing ? -1 : error;
	}
	switch (l->op) {
	case NOTIFY_OP_CREATE: return 0; /* EEXIST, as anywhere */
	case NOTIFY_OP_CHANGE: return read_only(fd) ? EROFS : 0;
	case NOTIFY_OP_EXEC: return access_errno(fd, X_OK);
	default: break;
	}
	if (l->flags & O_PATH)
		return 0;
	mode = (l->flags & O_ACCMODE) == O_RDONLY ? R_OK
	       : (l->flags & O_ACCMODE) == O_RDWR ? R_OK | W_OK
						  : W_OK;
	if (l->flags & O_TRUNC)
		mode |= W_OK;
	if ((l->flags & (O_TRUNC | O_CREAT)) && (mode & W_OK) && read_only(fd))
		return EROFS;
	return access_errno(fd, mode);
}

/* The user of the process for look-ups, of this thread alone. Only root can, and only root needs
 * it: an unprivileged supervisor has the same user. (For a process that is not dumpable /proc shows
 * root: then permissions are not foreseen, read-only and absent paths still are.) */
static void become(const struct stat *st)
{
	if (geteuid() == 0) {
		setfsgid(st->st_gid);
		setfsuid(st->st_uid);
	}
}

static void come_back(void)
{
	if (geteuid() == 0) {
		setfsuid(0);
		setfsgid(getegid());
	}
}

static void look_at(struct notify_call *call, const struct file_call *f, int root,
		    const struct notify_mounts *mounts)
{
	char path[2 * PATH_MAX], proc[32];
	struct lookup l = {.root = root, .path = path, .op = f->op};
	struct notify_event *ev;
	struct stat st;
	int error;

	if (absolute(call, f, path, sizeof(path)) < 0)
		return;
	if (str_starts(path, "/proc/") || str_starts(path, "/dev/"))
		return;
	if (f->flags != NONE && call->nr == SYS_openat2) {
		if (notify_read(call->pid, call->args[f->flags], &l.flags, sizeof(l.flags)) < 0)
			return;
	} else if (f->flags != NONE) {
		l.flags = (uint32_t)call->args[f->flags];
	} else if (l.op == NOTIFY_OP_WRITE) {
		l.flags = O_WRONLY; /* truncate() */
#ifdef SYS_creat
		if (call->nr == SYS_creat)
			l.flags |= O_CREAT;
#endif
	}
	if (l.op == NOTIFY_OP_READ && (l.flags & (O_ACCMODE | O_CREAT | O_TRUNC)))
		l.op = NOTIFY_OP_WRITE;

	snprintf(proc, sizeof(proc), "/proc/%d", call->pid);
	if (stat(proc, &st) < 0)
		return;
	become(&st);
	error = predict(&l);
	come_back();
	if (error == 0 || (error < 0 && !notify_mounts_have(mounts, path)))
		return;
	ev = notify_scratch(call->n);
	ev->kind = NOTIFY_FILE;
	ev->op = l.op;
	ev->error = error < 0 ? ENOENT : error;
	snprintf(ev->path, sizeof(ev->path), "%.*s", (int)sizeof(ev->path) - 1, path);
	notify_report(call, ev);
}

void notify_file(struct notify_call *call, int root, const struct notify_mounts *mounts)
{
	_cleanup_close_ int own = -1;

	if (root < 0) {
		char proc[32];

		snprintf(proc, sizeof(proc), "/proc/%d/root", call->pid);
		own = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (own < 0)
			return;
		root = own;
	}
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].nr == call->nr)
			look_at(call, &calls[i], root, mounts);
}
