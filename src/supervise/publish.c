/* Listeners on the host for published ports: see publish.h.
 *
 * Runs in the supervisor with the caller's rights. Reads nothing of the box; what is hostile is the
 * directory of a Unix socket, in which others may put links and files while we look. So no part of
 * its path may be a symbolic link, the socket is made under a name of its own and then renamed, and
 * a name is taken over only by an exchange, after which what was exchanged is looked at again.
 *
 * A process killed by SIGKILL removes nothing. So a keeper, a child that does nothing but wait for
 * the end of the supervisor, removes the sockets. */
#include "supervise/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/fd.h"
#include "base/str.h"

#define STAGE	     "supervise"
#define FREE_TRIES   32 /* to find a port that is free for both families */
#define KEEPER_FIRST 3	/* descriptors of the keeper: from here on the directories */

struct listener {
	uint16_t port, host_port;
	const char *path; /* the policy's */
	const char *name; /* the last part of it */
	int fds[PUBLISH_LISTENERS];
	size_t nfds;
	int dir; /* of path, or -1 */
	dev_t dev;
	ino_t ino; /* of the socket that is there now; 0: none is ours */
};

struct publish {
	struct listener *all;
	size_t n;
	pid_t keeper;	 /* 0: none */
	int keeper_pipe; /* its end is our end */
};

/* --- loopback ----------------------------------------------------------------------------------
 */

static socklen_t address(int family, uint16_t port, struct sockaddr_storage *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)ret;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(*in);
	}

	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	in6->sin6_addr = in6addr_loopback;
	return sizeof(*in6);
}

/* A descriptor or a negative errno. */
static int listen_on(int family, uint16_t port)
{
	_cleanup_close_ int fd =
		socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	struct sockaddr_storage at;
	socklen_t len = address(family, port, &at);
	int on = 1;

	if (fd < 0)
		return -errno;
	/* Connections of an earlier run that wait for their last packets are no obstacle. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    (family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
	    bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, SOMAXCONN) < 0)
		return -errno;
	return take_fd(&fd);
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	return getsockname(fd, (struct sockaddr *)&at, &len) < 0 ? 0 : ntohs(at.sin_port);
}

static int fail_port(const struct listener *l, int family, int sys, struct pale_err *err)
{
	err_set(err, sys == EADDRINUSE || sys == EACCES ? PALE_E_USAGE : PALE_E_SYSTEM, STAGE, sys,
		"cannot publish port %u of the box at %s port %u", l->port,
		family == AF_INET ? "127.0.0.1" : "::1", l->host_port);
	if (sys == EADDRINUSE)
		err_add(err, ": another program has it; leave host_port out to get a free one");
	if (sys == EACCES)
		err_add(err, ": ports below net.ipv4.ip_unprivileged_port_start are for root");
	return -(int)err->code;
}

static int open_port(struct listener *l, struct pale_err *err)
{
	bool any = l->host_port == 0;

	for (int i = 0;; i++) {
		int v4 = listen_on(AF_INET, any ? 0 : l->host_port), v6;

		if (v4 < 0)
			return fail_port(l, AF_INET, -v4, err);
		l->host_port = port_of(v4);
		v6 = listen_on(AF_INET6, l->host_port);
		if (any && v6 == -EADDRINUSE && i < FREE_TRIES) {
			close(v4);
			continue;
		}
		l->fds[l->nfds++] = v4;
		/* A host without IPv6 has one address less. */
		if (v6 == -EAFNOSUPPORT || v6 == -EADDRNOTAVAIL)
			return 0;
		if (v6 < 0)
			return fail_port(l, AF_INET6, -v6, err);
		l->fds[l->nfds++] = v6;
		return 0;
	}
}

/* --- Unix sockets ------------------------------------------------------------------------------
 */

/* bind() and connect() take no directory: through its descriptor in /proc, which also makes room in
 * sun_path. */
static bool name_in(int dir, const char *name, struct sockaddr_un *ret)
{
	int n;

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", dir, name);
	return n > 0 && (size_t)n < sizeof(ret->sun_path);
}

/* Does somebody listen on this socket? When in doubt, yes. */
static bool is_alive(int dir, const char *name)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un at;

	if (fd < 0 || !name_in(dir, name, &at))
		return true;
	return connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0 || errno != ECONNREFUSED;
}

static int fail_path(const struct listener *l, int sys, const char *why, struct pale_err *err)
{
	return err_set(err, PALE_E_USAGE, STAGE, sys, "cannot publish port %u of the box at %s%s%s",
		       l->port, QUOTED(l->path), *why ? ": " : "", why);
}

/* Puts our socket, which has the name `made`, in the place of one that nobody listens on. */
static int replace(const struct listener *l, const char *made, struct pale_err *err)
{
	struct stat before, after;

	if (fstatat(l->dir, l->name, &before, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_path(l, errno, "", err);
	if (!S_ISSOCK(before.st_mode))
		return fail_path(l, 0, "something that is no socket is there", err);
	if (before.st_uid != geteuid())
		return fail_path(l, 0, "another user's socket is there", err);
	if (is_alive(l->dir, l->name))
		return fail_path(l, 0, "a program listens there", err);
	if (renameat2(l->dir, made, l->dir, l->name, RENAME_EXCHANGE) < 0)
		return fail_path(l, errno, "", err);
	/* What `made` is now must be what was looked at. */
	if (fstatat(l->dir, made, &after, AT_SYMLINK_NOFOLLOW) == 0 &&
	    after.st_dev == before.st_dev && after.st_ino == before.st_ino) {
		unlinkat(l->dir, made, 0);
		return 0;
	}
	(void)!renameat2(l->dir, made, l->dir, l->name, RENAME_EXCHANGE);
	return fail_path(l, 0, "it was changed meanwhile", err);
}

static int put_in_place(struct listener *l, const char *made, struct pale_err *err)
{
	struct stat st;
	int r;

	if (fstatat(l->dir, made, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_path(l, errno, "", err);
	if (renameat2(l->dir, made, l->dir, l->name, RENAME_NOREPLACE) == 0)
		r = 0;
	else if (errno == EEXIST)
		r = replace(l, made, err);
	else
		r = fail_path(l, errno, "", err);
	if (r == 0) {
		l->dev = st.st_dev;
		l->ino = st.st_ino;
	}
	return r;
}

static int open_directory(struct listener *l, struct pale_err *err)
{
	_cleanup_free_ char *dir = strndup(l->path, (size_t)(l->name - l->path));

	if (!dir)
		return err_nomem(err, STAGE);
	l->dir = fd_openat2(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS);
	if (l->dir >= 0)
		return 0;
	if (l->dir == -ELOOP)
		return fail_path(l, 0,
				 "a directory on the way is a symbolic link: write the path as "
				 "realpath(1) prints it",
				 err);
	return fail_path(l, -l->dir, "", err);
}

static int open_path(struct listener *l, struct pale_err *err)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_un at;
	char made[32];
	uint64_t random;
	int r = open_directory(l, err);

	if (r < 0)
		return r;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a random name");
	snprintf(made, sizeof(made), ".pale.%016llx", (unsigned long long)random);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The mode of a socket that is not bound yet is that of the name which it gets. */
	if (fd < 0 || !name_in(l->dir, made, &at) || fchmod(fd, 0600) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return fail_path(l, errno, "", err);
	if (listen(fd, SOMAXCONN) < 0)
		r = fail_path(l, errno, "", err);
	if (r == 0)
		r = put_in_place(l, made, err);
	if (r < 0)
		unlinkat(l->dir, made, 0);
	else
		l->fds[l->nfds++] = take_fd(&fd);
	return r;
}

/* Only what is still ours. */
static void remove_socket(int dir, const struct listener *l)
{
	struct stat st;

	if (l->ino && fstatat(dir, l->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == l->dev &&
	    st.st_ino == l->ino)
		unlinkat(dir, l->name, 0);
}

/* --- the keeper --------------------------------------------------------------------------------
 */

/* Its memory is a copy of ours; it holds no descriptor but these, least of all one by which the box
 * would seem to have a supervisor. */
static _Noreturn void keep(struct publish *p, int wait_fd)
{
	sigset_t all;
	int next = KEEPER_FIRST;
	char byte;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	(void)!chdir("/");
	prctl(PR_SET_NAME, "pale-keeper");
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* First out of the way of the numbers that they get. */
	for (size_t i = 0; i < p->n; i++)
		if (p->all[i].dir >= 0)
			p->all[i].dir = fcntl(p->all[i].dir, F_DUPFD_CLOEXEC, 64);
	wait_fd = fcntl(wait_fd, F_DUPFD_CLOEXEC, 64);
	if (dup2(wait_fd, STDIN_FILENO) < 0)
		_exit(1);
	for (size_t i = 0; i < p->n; i++) {
		if (p->all[i].dir < 0)
			continue;
		if (dup2(p->all[i].dir, next) < 0)
			_exit(1);
		p->all[i].dir = next++;
	}
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	/* What it kept would stay open for as long as it waits. */
	if (close_range((unsigned)next, ~0u, 0) < 0)
		_exit(1);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < p->n; i++)
		if (p->all[i].dir >= 0)
			remove_socket(p->all[i].dir, &p->all[i]);
	_exit(0);
}

static int start_keeper(struct publish *p, struct pale_err *err)
{
	bool needed = false;
	int pipe_fds[2];

	for (size_t i = 0; i < p->n; i++)
		needed |= p->all[i].dir >= 0;
	if (!needed)
		return 0;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a pipe");
	p->keeper = fork();
	if (p->keeper == 0)
		keep(p, pipe_fds[0]);
	close(pipe_fds[0]);
	p->keeper_pipe = pipe_fds[1];
	if (p->keeper < 0) {
		p->keeper = 0;
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot start the keeper of the "
			       "published sockets");
	}
	return 0;
}

/* --- all of them -------------------------------------------------------------------------------
 */

int publish_open(const struct policy_network *n, struct publish **ret, struct pale_err *err)
{
	struct publish *p = calloc(1, sizeof(*p));
	int r = 0;

	if (!p)
		return err_nomem(err, STAGE);
	p->keeper_pipe = -1;
	p->all = calloc(n->npublish ? n->npublish : 1, sizeof(*p->all));
	if (!p->all) {
		free(p);
		return err_nomem(err, STAGE);
	}
	for (; r == 0 && p->n < n->npublish; p->n++) {
		const struct network_publish *e = &n->publish[p->n];
		struct listener *l = &p->all[p->n];

		*l = (struct listener){.port = e->port,
				       .host_port = e->host_port,
				       .path = e->path,
				       .name = e->path ? strrchr(e->path, '/') + 1 : NULL,
				       .dir = -1};
		r = e->path ? open_path(l, err) : open_port(l, err);
	}
	if (r == 0)
		r = start_keeper(p, err);
	if (r < 0) {
		publish_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void publish_handed_over(struct publish *p)
{
	for (size_t i = 0; i < p->n; i++)
		while (p->all[i].nfds)
			close(p->all[i].fds[--p->all[i].nfds]);
}

void publish_free(struct publish *p)
{
	if (!p)
		return;
	publish_handed_over(p);
	close_fd(&p->keeper_pipe);
	while (p->keeper && waitpid(p->keeper, NULL, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < p->n; i++) {
		/* Where the keeper was killed, or never started. */
		if (p->all[i].dir >= 0)
			remove_socket(p->all[i].dir, &p->all[i]);
		close_fd(&p->all[i].dir);
	}
	free(p->all);
	free(p);
}

size_t publish_listeners(const struct publish *p, size_t i, const int **ret_fds)
{
	*ret_fds = p->all[i].fds;
	return p->all[i].nfds;
}

json_t *publish_to_json(const struct publish *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->n; i++) {
		const struct listener *l = &p->all[i];
		json_t *o = json_pack("{si}", "port", l->port);

		if (l->path)
			json_object_set_new(o, "path",
					    audit_text(l->path, strlen(l->path), 4 * 108));
		else
			json_object_set_new(o, "host_port", json_integer(l->host_port));
		json_array_append_new(list, o);
	}
	return list;
}
