/* The command's end of pale-patch: see patch.h and patch_main.c.
 *
 * Runs in `pale diff` with the caller's rights. Reads the host's old contents and the kept new ones
 * and hands both over; what comes back was made by a process that is assumed lost: lengths are
 * bounded, and its text is hostile to a terminal. */
#include "files/patch.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/patch_wire.h"

#define CHUNK 65536

struct patcher {
	int sock;
	pid_t pid;
};

/* The helper: named by the environment (tests), beside an installed or a built `pale`, or where it
 * was to be installed. */
static void find_helper(char out[static PATH_MAX])
{
	static const char *const beside[] = {"../libexec/pale/pale-patch", "../pale-patch"};
	const char *named = getenv("PALE_PATCH_HELPER");
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (named && *named) {
		snprintf(out, PATH_MAX, "%s", named);
		return;
	}
	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < ARRAY_SIZE(beside); i++) {
		int len = snprintf(out, PATH_MAX, "%.*s/%s", (int)(slash - self), self, beside[i]);

		if (len < PATH_MAX && access(out, X_OK) == 0)
			return;
	}
	snprintf(out, PATH_MAX, "%s/pale-patch", PALE_LIBEXECDIR);
}

int patcher_start(struct patcher **ret, struct pale_err *err)
{
	char helper[PATH_MAX];
	char *const argv[] = {(char[]){"pale-patch"}, NULL}, *const envp[] = {NULL};
	struct patcher *p;
	pid_t pid;
	int pair[2];

	find_helper(helper);
	if (access(helper, X_OK) < 0)
		return err_set(
			err, PALE_E_NOTFOUND, "files", errno,
			"cannot run %s, which compares files for `pale diff` (it is installed "
			"with Pale; --name-only works without it)",
			QUOTED(helper));
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_nomem(err, "files");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(p);
		return err_set(err, PALE_E_SYSTEM, "files", errno,
			       "making a socket for pale-patch");
	}
	pid = fork();
	if (pid == 0) {
		/* Standard error stays, for the loader's complaints. */
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		if (dup2(pair[1], 0) == 0 && dup2(null, 1) == 1 && close_range(3, ~0u, 0) == 0)
			execve(helper, argv, envp);
		_exit(127);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		free(p);
		return err_set(err, PALE_E_SYSTEM, "files", errno, "starting pale-patch");
	}
	*p = (struct patcher){.sock = pair[0], .pid = pid};
	*ret = p;
	return 0;
}

void patcher_free(struct patcher *p)
{
	if (!p)
		return;
	close(p->sock);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(p);
}

static int send_all(struct patcher *p, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = send(p->sock, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* One side of a difference: a text in memory, or len bytes of a file. */
struct side {
	uint32_t mode;
	uint64_t len;
	int fd;
	int64_t offset;
	const char *text;
};

static int send_side(struct patcher *p, const struct side *s)
{
	char chunk[CHUNK];

	if (s->text)
		return send_all(p, s->text, s->len);
	for (uint64_t done = 0; done < s->len;) {
		size_t want = s->len - done < CHUNK ? (size_t)(s->len - done) : CHUNK;
		ssize_t n = pread(s->fd, chunk, want, s->offset + (int64_t)done);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA; /* shorter than it was a moment ago */
		r = send_all(p, chunk, (size_t)n);
		if (r < 0)
			return r;
		done += (uint64_t)n;
	}
	return 0;
}

static int receive(struct patcher *p, patch_sink *sink, void *arg, struct patch_stat *ret)
{
	struct patch_answer a;
	char chunk[CHUNK];

	if (fd_read_full(p->sock, &a, sizeof(a)) != (ssize_t)sizeof(a) || a.magic != PATCH_MAGIC ||
	    a.len > PATCH_OUT_MAX)
		return -EPIPE;
	ret->binary = a.binary;
	ret->added = a.added;
	ret->removed = a.removed;
	while (a.len) {
		size_t want = a.len < CHUNK ? (size_t)a.len : CHUNK;

		if (fd_read_full(p->sock, chunk, want) != (ssize_t)want)
			return -EPIPE;
		if (sink && sink(arg, chunk, want) < 0)
			return -ECANCELED;
		a.len -= want;
	}
	return 0;
}

static int ask(struct patcher *p, const char *path, const struct side *old, const struct side *new,
	       patch_sink *sink, void *arg, struct patch_stat *ret, struct pale_err *err)
{
	struct patch_request q = {
		.magic = PATCH_MAGIC,
		.want = sink ? PATCH_WANT_TEXT : PATCH_WANT_STAT,
		.old_mode = old->mode,
		.new_mode = new->mode,
		.old_len = old->len,
		.new_len = new->len,
		.path_len = (uint32_t)strlen(path),
	};
	struct patch_stat stat = {0};
	int r;

	if (old->len > PATCH_SIDE_MAX || new->len > PATCH_SIDE_MAX) {
		ret->too_large = true;
		return 0;
	}
	r = send_all(p, &q, sizeof(q));
	if (r == 0)
		r = send_all(p, path, q.path_len);
	if (r == 0)
		r = send_side(p, old);
	if (r == 0)
		r = send_side(p, new);
	if (r == 0)
		r = receive(p, sink, arg, &stat);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, "files", r == -ECANCELED ? 0 : -r,
			       "making the patch of %s", QUOTED(path));
	ret->binary |= stat.binary;
	ret->added += stat.added;
	ret->removed += stat.removed;
	return 0;
}

static uint32_t git_mode(enum change_type type, uint32_t mode)
{
	return type == TYPE_SYMLINK ? 0120000
	       : type != TYPE_FILE  ? 0
	       : mode & 0100	    ? 0100755
				    : 0100644;
}

/* The host's side as it is now; *ret_fd is closed by the caller; link is room for a link's target.
 */
static int old_side(struct host_dir *dir, const struct change *c, struct side *ret, int *ret_fd,
		    char link[static MANIFEST_TARGET_MAX + 1])
{
	const char *name;
	int parent = host_parent(dir, c->path, false, &name);
	struct stat st;
	ssize_t n;

	*ret = (struct side){.fd = -1, .text = ""};
	if (parent < 0 || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return parent == -ENOMEM ? parent : 0;
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(parent, name, link, MANIFEST_TARGET_MAX + 1);
		if (n < 0 || n > MANIFEST_TARGET_MAX)
			return n < 0 ? -errno : -ENAMETOOLONG;
		*ret = (struct side){.mode = 0120000, .len = (uint64_t)n, .fd = -1, .text = link};
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	*ret_fd = fd_open_beneath(parent, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (*ret_fd < 0)
		return *ret_fd;
	if (fstat(*ret_fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ESTALE;
	*ret = (struct side){.mode = git_mode(TYPE_FILE, st.st_mode),
			     .len = (uint64_t)st.st_size,
			     .fd = *ret_fd};
	return 0;
}

static void new_side(const struct manifest *m, const struct change *c, const struct side *old,
		     struct side *ret)
{
	*ret = (struct side){.fd = -1, .text = "", .mode = git_mode(c->type, c->mode)};
	if (c->kind == CHANGE_DELETED) {
		ret->mode = 0;
	} else if (c->kind == CHANGE_MODE) {
		*ret = *old;
		ret->mode = git_mode(c->type, c->mode);
	} else if (c->type == TYPE_SYMLINK) {
		ret->text = c->target;
		ret->len = strlen(c->target);
	} else if (c->type == TYPE_FILE) {
		ret->text = NULL;
		ret->fd = m->contents_fd;
		ret->offset = (int64_t)c->offset;
		ret->len = c->size;
	}
}

int patcher_change(struct patcher *p, const struct manifest *m, struct host_dir *dir,
		   const struct change *c, patch_sink *sink, void *arg, struct patch_stat *ret,
		   struct pale_err *err)
{
	const struct side nothing = {.fd = -1, .text = ""};
	char link[MANIFEST_TARGET_MAX + 1];
	_cleanup_close_ int fd = -1;
	struct side old, new;
	int r;

	*ret = (struct patch_stat){0};
	if (c->kind == CHANGE_REFUSED || c->kind == CHANGE_TOUCHED)
		return 0;
	r = old_side(dir, c, &old, &fd, link);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -r, "reading %s on the host",
			       QUOTED(c->path));
	if (c->kind == CHANGE_MODE && !old.mode)
		return 0; /* gone on the host: a conflict */
	new_side(m, c, &old, &new);
	if (old.mode == new.mode && c->kind == CHANGE_MODE)
		return 0; /* bits that git does not keep */
	if (!old.mode && !new.mode)
		return 0; /* directories */
	/* Another type: one away, one new, as git says it. */
	if (old.mode && new.mode && ((old.mode ^ new.mode) & 0170000)) {
		r = ask(p, c->path, &old, &nothing, sink, arg, ret, err);
		return r < 0 ? r : ask(p, c->path, &nothing, &new, sink, arg, ret, err);
	}
	return ask(p, c->path, &old, &new, sink, arg, ret, err);
}
