/* Executes the plan's steps for files: a new root, made of detached mounts.
 *
 * Runs in the set-up child, in the box's fresh user and mount namespaces, with all capabilities
 * there and none outside. Hostile: names and links inside mounted host directories. The tree that
 * we make ourselves holds no links but ours, so paths in it are walked plainly; what lies in a
 * mounted directory (step.nested) is resolved without following any link. */
#include "process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/str.h"
#include "confine/mount.h"

#define STAGE "isolation"

/* The directory on which the new root is mounted for as long as it is being filled. */
static const char *const base_dirs[] = {"/tmp", "/run", "/var", "/usr"};

static int fail(struct pale_err *err, const struct step *s, int sys, const char *what)
{
	return err_set(err, PALE_E_SYSTEM, STAGE, sys, "%s for %s", what,
		       QUOTED(s->target ? s->target : step_name(s->type)));
}

int mounts_open_sources(struct mounts *m, struct pale_err *err)
{
	for (size_t i = 0; i < m->plan->nsteps; i++) {
		if (!m->plan->steps[i].source || m->sources[i] >= 0 ||
		    step_left_out(m->role, &m->plan->steps[i]))
			continue;
		m->sources[i] = source_open(&m->plan->steps[i], err);
		if (m->sources[i] < 0)
			return m->sources[i];
	}
	return 0;
}

static int step_root(struct mounts *m, struct pale_err *err)
{
	const char *base = NULL;
	struct stat st;

	/* Nothing that happens here may show on the host. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make the mounts private");
	for (size_t i = 0; i < ARRAY_SIZE(base_dirs) && !base; i++)
		if (stat(base_dirs[i], &st) == 0 && S_ISDIR(st.st_mode))
			base = base_dirs[i];
	if (!base)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "there is no /tmp to build the new root on");
	if (mount("pale", base, "tmpfs", MS_NOSUID | MS_NODEV,
		  "mode=0755,size=16m,nr_inodes=16384") < 0 ||
	    chdir(base) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot mount a tmpfs for the new root");
	m->scratch = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->scratch < 0 || mkdir("root", 0755) < 0 || mkdir("data", 0755) < 0 ||
	    mkdir("empty", 0555) < 0 || mount("root", "root", NULL, MS_BIND, NULL) < 0 ||
	    chdir("root") < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot prepare the new root");
	return 0;
}

/* A descriptor of the place where a mount goes, or a negative errno. */
static int open_target(const struct step *s)
{
	uint64_t resolve =
		s->nested ? RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS : 0;

	return fd_openat2(AT_FDCWD, s->target, O_PATH | O_NOFOLLOW, 0, resolve);
}

static int attach(const struct step *s, int tree, struct pale_err *err)
{
	_cleanup_close_ int at = -1;
	int r;

	if (!s->nested) {
		r = mount_move(tree, AT_FDCWD, s->target);
	} else {
		at = open_target(s);
		if (at == -ELOOP)
			return err_set(err, PALE_E_HOST, STAGE, 0,
				       "%s leads through a symbolic link inside a mounted "
				       "directory; name the place "
				       "it points to",
				       QUOTED(s->target));
		r = at < 0 ? at : mount_move(tree, at, "");
	}
	return r < 0 ? fail(err, s, -r, "cannot mount") : 0;
}

static int chown_to_user(const struct mounts *m, int dirfd, const char *path)
{
	if (!m->plan->user_range)
		return 0;
	return fchownat(dirfd, path, m->plan->uid, m->plan->gid, AT_SYMLINK_NOFOLLOW);
}

static int step_dir(const struct mounts *m, const struct step *s, struct pale_err *err)
{
	if (mkdir(s->target, s->mode) < 0 && errno != EEXIST)
		return fail(err, s, errno, "cannot make the directory");
	if (s->own && chown_to_user(m, AT_FDCWD, s->target) < 0)
		return fail(err, s, errno, "cannot set the owner");
	return 0;
}

static int write_file(int dirfd, const char *path, const char *content, unsigned mode)
{
	_cleanup_close_ int fd =
		openat(dirfd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, content, strlen(content));
	return r < 0 ? r : take_fd(&fd);
}

static int step_file(const struct mounts *m, const struct step *s, struct pale_err *err)
{
	const char *content = s->given			     ? m->plan->files[s->given - 1].content
			      : s->secret && m->placeholders ? m->placeholders[s->secret - 1]
							     : s->content;
	_cleanup_close_ int fd = write_file(AT_FDCWD, s->target, content ? content : "", s->mode);

	if (fd < 0)
		return fail(err, s, -fd, "cannot write the file");
	if (s->own && chown_to_user(m, AT_FDCWD, s->target) < 0)
		return fail(err, s, errno, "cannot set the owner");
	return 0;
}

static int step_data(struct mounts *m, const struct step *s, struct pale_err *err)
{
	char options[96];

	snprintf(options, sizeof(options), "mode=0755,size=%llu,nr_inodes=%llu",
		 (unsigned long long)s->size_bytes, (unsigned long long)s->inodes);
	if (mount("pale", PLAN_DATA, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return fail(err, s, errno, "cannot mount the tmpfs that keeps the disk limit");
	m->data_fd = open(PLAN_DATA, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return m->data_fd < 0 ? fail(err, s, errno, "cannot open the tmpfs") : 0;
}

static int step_source(struct mounts *m, const struct step *s, size_t at, struct pale_err *err)
{
	char name[16];
	int r;

	snprintf(name, sizeof(name), "s%u", s->index);
	if (mkdirat(m->scratch, name, 0755) < 0)
		return fail(err, s, errno, "cannot prepare the source");
	r = mount_move(m->sources[at], m->scratch, name);
	return r < 0 ? fail(err, s, -r, "cannot mount the source") : 0;
}

/* Gives a directory that stands before the source's own in an overlay the source's attributes, so
 * that modes and times show unchanged. The owner follows where the id exists in here. */
static int copy_attributes(int from_dir, const char *from, int dirfd, const char *path)
{
	struct timespec times[2];
	struct stat st;

	if (fstatat(from_dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (fchownat(dirfd, path, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno != EINVAL && errno != EPERM)
		return -errno;
	if (fchmodat(dirfd, path, st.st_mode & 01777, 0) < 0)
		return -errno;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	return utimensat(dirfd, path, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* One component of a skeleton: made unless the source has it (then it must stay as it is; only
 * the directories on the way are repeated, with the source's attributes). */
static int skeleton_component(const struct step *s, int k, int src, const char *path, bool last,
			      struct pale_err *err)
{
	_cleanup_close_ int there = fd_open_beneath(src, path, O_PATH, 0), made = -1;
	struct stat st;
	int r;

	if (there >= 0 && fstat(there, &st) < 0)
		return fail(err, s, errno, "cannot look at the mount point");
	if (there == -ELOOP || (there >= 0 && S_ISLNK(st.st_mode)))
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "%s leads through a symbolic link inside a mounted directory; name "
			       "the place it "
			       "points to",
			       QUOTED(s->target));
	if (there < 0 && there != -ENOENT)
		return fail(err, s, -there, "cannot look at the mount point");
	if (there >= 0 && last)
		return 0;
	if (there < 0 && last && s->is_file) {
		made = write_file(k, path, "", 0444);
		return made < 0 && made != -EEXIST
			       ? fail(err, s, -made, "cannot make the mount point")
			       : 0;
	}
	if (mkdirat(k, path, 0755) < 0 && errno != EEXIST)
		return fail(err, s, errno, "cannot make the mount point");
	r = copy_attributes(src, path, k, path);
	return r < 0 ? fail(err, s, -r, "cannot make the mount point") : 0;
}

/* content is the path, below the source, of a mount point that may be missing there. It is made in
 * the skeleton that lies over the source: on the host nothing is ever created. */
static int step_skeleton(struct mounts *m, const struct step *s, struct pale_err *err)
{
	_cleanup_free_ char *path = strdup(s->content);
	_cleanup_close_ int k = -1, src = -1;
	char skeleton[16], source[16];
	int r;

	if (!path)
		return err_nomem(err, STAGE);
	snprintf(skeleton, sizeof(skeleton), "k%u", s->index);
	snprintf(source, sizeof(source), "s%u", s->index);
	if (mkdirat(m->scratch, skeleton, 0755) < 0 && errno != EEXIST)
		return fail(err, s, errno, "cannot prepare the mount point");
	r = copy_attributes(m->scratch, source, m->scratch, skeleton);
	if (r < 0)
		return fail(err, s, -r, "cannot prepare the mount point");
	k = openat(m->scratch, skeleton, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	src = openat(m->scratch, source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (k < 0 || src < 0)
		return fail(err, s, errno, "cannot prepare the mount point");
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = skeleton_component(s, k, src, path, false, err);
		*slash = '/';
		if (r < 0)
			return r;
	}
	r = skeleton_component(s, k, src, path, true, err);
	if (r < 0)
		return r;
	/* What was made in them has changed their times, the innermost first. */
	for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
		*slash = '\0';
		r = copy_attributes(src, path, k, path);
		if (r < 0)
			return fail(err, s, -r, "cannot prepare the mount point");
	}
	r = copy_attributes(m->scratch, source, m->scratch, skeleton);
	return r < 0 ? fail(err, s, -r, "cannot prepare the mount point") : 0;
}

static int prepare_upper(struct mounts *m, const struct step *s, struct pale_err *err)
{
	char upper[16], work[16], source[16];
	int r;

	snprintf(source, sizeof(source), "s%u", s->index);
	snprintf(upper, sizeof(upper), "u%u", s->index);
	snprintf(work, sizeof(work), "w%u", s->index);
	if (mkdirat(m->data_fd, upper, 0755) < 0 || mkdirat(m->data_fd, work, 0700) < 0)
		return fail(err, s, errno, "cannot prepare the upper directory");
	r = copy_attributes(m->scratch, source, m->data_fd, upper);
	return r < 0 ? fail(err, s, -r, "cannot prepare the upper directory") : 0;
}

/* What lies under a session's overlay stays within reach of the supervisor's helper that brings
 * back what an execution changed there. layers: the source, or with a skeleton the two. */
static int keep_lower(struct mounts *m, const struct step *s, const char *layers,
		      struct pale_err *err)
{
	bool two = strchr(layers, ':');

	for (size_t i = 0; m->plan->kernel && i < m->plan->noverlays; i++) {
		int fd;

		if (m->plan->overlays[i].index != s->index)
			continue;
		fd = two ? mount_overlay(layers, NULL, NULL)
			 : open(layers, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return fail(err, s, two ? -fd : errno, "cannot open what lies under it");
		m->lower_fds[i] = fd;
	}
	return 0;
}

static int step_overlay(struct mounts *m, const struct step *s, struct pale_err *err)
{
	char lower[64], upper[32], work[32], skeleton[16];
	_cleanup_close_ int tree = -1;
	bool writable = s->type == STEP_OVERLAY;
	struct stat st;
	int r;

	/* Two layers at least where there is none to write to: an empty one goes below. */
	snprintf(skeleton, sizeof(skeleton), "k%u", s->index);
	if (fstatat(m->scratch, skeleton, &st, 0) == 0)
		snprintf(lower, sizeof(lower), PLAN_SCRATCH "/k%u:" PLAN_SCRATCH "/s%u", s->index,
			 s->index);
	else if (writable)
		snprintf(lower, sizeof(lower), PLAN_SCRATCH "/s%u", s->index);
	else
		snprintf(lower, sizeof(lower), PLAN_SCRATCH "/s%u:" PLAN_SCRATCH "/empty",
			 s->index);
	if (writable) {
		r = prepare_upper(m, s, err);
		if (r < 0)
			return r;
	}
	snprintf(upper, sizeof(upper), PLAN_DATA "/u%u", s->index);
	snprintf(work, sizeof(work), PLAN_DATA "/w%u", s->index);
	tree = mount_overlay(lower, writable ? upper : NULL, writable ? work : NULL);
	if (tree < 0)
		return err_set(err, PALE_E_HOST, STAGE, -tree,
			       "cannot mount an overlay for %s (overlayfs in a user namespace "
			       "needs Linux 5.11, and "
			       "some file systems cannot lie below one)",
			       QUOTED(s->target));
	r = attach(s, tree, err);
	return r < 0 || !writable ? r : keep_lower(m, s, lower, err);
}

static int step_writable(struct mounts *m, const struct step *s, struct pale_err *err)
{
	_cleanup_close_ int tree = -1, dir = -1;

	if (mkdirat(m->data_fd, s->content, s->mode & 0777) < 0 && errno != EEXIST)
		return fail(err, s, errno, "cannot make the directory");
	dir = openat(m->data_fd, s->content, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fchmod(dir, s->mode) < 0 ||
	    (s->own && chown_to_user(m, m->data_fd, s->content) < 0))
		return fail(err, s, errno, "cannot prepare the directory");
	tree = mount_clone(dir, false);
	if (tree < 0)
		return fail(err, s, -tree, "cannot clone the mount");
	for (size_t i = 0; i < m->plan->ncollect; i++)
		if (m->plan->collect[i].name && strcmp(m->plan->collect[i].name, s->content) == 0)
			m->collect_fds[i] = take_fd(&dir);
	return attach(s, tree, err);
}

static int step_tmpfs(struct mounts *m, const struct step *s, struct pale_err *err)
{
	char size[32], inodes[32], mode[16];
	_cleanup_close_ int tree = -1, dir = -1;
	const char *options[] = {"size", size, "nr_inodes", inodes, "mode", mode, NULL};

	snprintf(size, sizeof(size), "%llu", (unsigned long long)s->size_bytes);
	snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)s->inodes);
	snprintf(mode, sizeof(mode), "%o", s->mode);
	tree = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (tree < 0)
		return fail(err, s, -tree, "cannot make a tmpfs");
	dir = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || (s->own && chown_to_user(m, dir, ".") < 0))
		return fail(err, s, errno, "cannot prepare the tmpfs");
	for (size_t i = 0; i < m->plan->ncollect; i++)
		if (!m->plan->collect[i].name &&
		    strcmp(m->plan->collect[i].path + 1, s->target) == 0)
			m->collect_fds[i] = take_fd(&dir);
	return attach(s, tree, err);
}

static int step_hide(struct mounts *m, const struct step *s, struct pale_err *err)
{
	_cleanup_close_ int at = open_target(s), from = -1, tree = -1;
	struct stat st;
	int r;

	if (at < 0 || fstat(at, &st) < 0)
		return fail(err, s, at < 0 ? -at : errno, "cannot hide");
	if (S_ISLNK(st.st_mode))
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "cannot hide %s: it is a symbolic link; hide the place it points to",
			       QUOTED(s->target));
	if (!S_ISDIR(st.st_mode)) {
		_cleanup_close_ int null = write_file(m->scratch, "null", "", 0444);

		if (null < 0 && null != -EEXIST)
			return fail(err, s, -null, "cannot hide");
	}
	from = openat(m->scratch, S_ISDIR(st.st_mode) ? "empty" : "null", O_PATH | O_CLOEXEC);
	tree = from < 0 ? -errno : mount_clone(from, false);
	r = tree < 0
		    ? tree
		    : mount_restrict(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID,
				     -1, false);
	if (r == 0)
		r = mount_move(tree, at, "");
	return r < 0 ? fail(err, s, -r, "cannot hide") : 0;
}

/* Empty until the supervisor, who gets the descriptor, fills it; read-only inside. */
static int step_cover(struct mounts *m, const struct step *s, struct pale_err *err)
{
	_cleanup_close_ int fd = -1, tree = -1;
	char name[16];
	int r;

	snprintf(name, sizeof(name), "v%u", s->index);
	fd = write_file(m->scratch, name, "", 0444);
	if (fd < 0)
		return fail(err, s, -fd, "cannot make the view");
	tree = mount_clone(fd, false);
	r = tree < 0 ? tree : mount_restrict(tree, MOUNT_ATTR_RDONLY, -1, false);
	if (r < 0)
		return fail(err, s, -r, "cannot mount the view");
	m->view_fds[s->index] = take_fd(&fd);
	return attach(s, tree, err);
}

static int plain_mount(const struct step *s, const char *type, unsigned long flags,
		       const char *options, struct pale_err *err)
{
	if (mount("pale", s->target, type, flags, options) == 0)
		return 0;
	if (errno == EPERM && s->type == STEP_PROC)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "the kernel refuses a fresh /proc, because the one outside is "
			       "partly covered, as in a "
			       "container; start the container with an uncovered /proc (docker: "
			       "--security-opt "
			       "systempaths=unconfined)");
	return fail(err, s, errno, "cannot mount");
}

/* Whoever connects to it in the box meets the broker, which gets the listener. */
static int step_socket(struct mounts *m, const struct step *s, struct pale_err *err)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	if (fd < 0 || strlen(s->target) >= sizeof(at.sun_path))
		return fail(err, s, fd < 0 ? errno : ENAMETOOLONG, "cannot make the socket");
	memcpy(at.sun_path, s->target, strlen(s->target));
	/* The name gets the mode of the socket. */
	if (fchmod(fd, s->mode) < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    (s->own && chown_to_user(m, AT_FDCWD, s->target) < 0) || listen(fd, 64) < 0)
		return fail(err, s, errno, "cannot make the socket");
	m->agent_fd = take_fd(&fd);
	return 0;
}

static int step_readonly(const struct step *s, struct pale_err *err)
{
	_cleanup_close_ int root = -1;
	int r;

	root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = root < 0 ? -errno : mount_restrict(root, MOUNT_ATTR_RDONLY, -1, false);
	return r < 0 ? fail(err, s, -r, "cannot make the root read-only") : 0;
}

int mounts_step(struct mounts *m, const struct step *s, size_t at, struct pale_err *err)
{
	if (step_left_out(m->role, s))
		return 0;
	switch (s->type) {
	case STEP_ROOT: return step_root(m, err);
	case STEP_DATA: return step_data(m, s, err);
	case STEP_DIR: return step_dir(m, s, err);
	case STEP_FILE: return step_file(m, s, err);
	case STEP_SYMLINK:
		return symlink(s->content, s->target) < 0
			       ? fail(err, s, errno, "cannot make the link")
			       : 0;
	case STEP_BIND: return attach(s, m->sources[at], err);
	case STEP_SOURCE: return step_source(m, s, at, err);
	case STEP_SKELETON: return step_skeleton(m, s, err);
	case STEP_VIEW:
	case STEP_OVERLAY: return step_overlay(m, s, err);
	case STEP_WRITABLE: return step_writable(m, s, err);
	case STEP_TMPFS: return step_tmpfs(m, s, err);
	case STEP_HIDE: return step_hide(m, s, err);
	case STEP_PROC: return plain_mount(s, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, err);
	case STEP_DEVPTS:
		/* max: the host has 4096 for all its boxes. */
		return plain_mount(s, "devpts", MS_NOSUID | MS_NOEXEC,
				   "newinstance,ptmxmode=0666,mode=0620,max=32", err);
	case STEP_COVER: return step_cover(m, s, err);
	case STEP_SOCKET: return step_socket(m, s, err);
	case STEP_READONLY: return step_readonly(s, err);
	}
	return err_set(err, PALE_E_SYSTEM, STAGE, 0, "unknown step %d", (int)s->type);
}

/* Only now: the set-up has written to it. */
int mounts_close_proc(const struct plan *plan, struct pale_err *err)
{
	for (size_t i = 0; i < plan->nsteps; i++) {
		const struct step *s = &plan->steps[i];
		_cleanup_close_ int proc = -1;
		int r;

		if (s->type != STEP_PROC || !s->readonly)
			continue;
		proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = proc < 0 ? -errno : mount_restrict(proc, MOUNT_ATTR_RDONLY, -1, false);
		if (r < 0)
			return fail(err, s, -r, "cannot make it read-only");
	}
	return 0;
}

static int detach(void *unused)
{
	(void)unused;
	return umount2(".", MNT_DETACH) < 0 ? -errno : 0;
}

int mounts_leave(struct helper *h, struct pale_err *err)
{
	int r;

	/* The host's tree ends up on top of the new root, and goes, and the scratch mounts with it.
	 * Our "/" is the new root already, not what lies on it. */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot change the root");
	r = helper_start(h, detach, NULL);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot start a helper");
	return chdir("/") < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot enter the root")
			      : 0;
}

int mounts_left(struct helper *h, struct pale_err *err)
{
	int r = helper_wait(h);

	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot leave the old root") : 0;
}
