/* Zygotes, from outside: see zygote.h and isolation_adopt().
 *
 * zygote_start() runs in the process that has boxes made ahead, the rest in the supervisors, which
 * are forks of it, with the caller's privileges, single-threaded. What comes over the sockets here
 * is the zygote's and its forks' (trusted) until a fork says that it is done. */
#include "process.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "confine/seccomp.h"
#include "init/protocol.h"
#include "init_blob.h"
#include "isolation/process/zygote_impl.h"
#include "isolation/process/zygote_wire.h"
#include "plan/kernel.h"
#include "zygote_blob.h"

#define STAGE	       "isolation"
#define IMPORT_TIME_MS 120000
#define ADOPT_TIME_MS  20000
#define REAPED_TIME_MS 100 /* from a command's end until its status is known */
#define UNKNOWN_STATUS 9   /* then: as if it was killed */

/* ---- a zygote ---- */

/* Where its interpreter is in a place of the policy's files there is none of it in its box. */
static int check_program(const struct plan *plan, struct pale_err *err)
{
	const char *program = plan->command.program;

	if (!plan->kernel || !kernel_serves(plan->kernel))
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "this kernel cannot be forked from one that is ready");
	if (plan_waits_for_group(plan))
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "systemd, which is asked for control groups here, takes no process "
			       "into a scope that is there already");
	for (size_t i = 0; i < plan->nsteps; i++) {
		const struct step *s = &plan->steps[i];
		size_t len = s->target ? strlen(s->target) : 0;

		if (s->of_policy && len && strncmp(program + 1, s->target, len) == 0 &&
		    (program[1 + len] == '/' || !program[1 + len]))
			return err_set(err, PALE_E_HOST, STAGE, 0,
				       "the interpreter %s lies in a directory of the policy's, "
				       "which boxes could have changed",
				       QUOTED(program));
	}
	return 0;
}

/* What the interpreter said last. */
static int fail_start(const struct zygote *z, struct pale_err *err)
{
	char text[1024], *last;
	ssize_t n = read(z->output_fd, text, sizeof(text) - 1), more;

	while (n > 0 &&
	       (more = read(z->output_fd, text + n / 2, sizeof(text) - 1 - (size_t)n / 2)) > 0) {
		memmove(text, text + n / 2, (size_t)more);
		n = more;
	}
	text[n > 0 ? n : 0] = '\0';
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	last = strrchr(text, '\n');
	return err_set(err, PALE_E_HOST, STAGE, 0, "the interpreter ended before it was ready: %s",
		       QUOTED(last ? last + 1 : text));
}

int zygote_ready(struct zygote *z, struct pale_err *err)
{
	struct setup_packet packet;
	struct pollfd p = {z->request_fd, POLLIN, 0};
	uint64_t until = clock_mono_us() + IMPORT_TIME_MS * 1000ULL;
	ssize_t n;
	int polled;

	do {
		uint64_t now = clock_mono_us();

		polled = now >= until ? 0 : poll(&p, 1, (int)((until - now) / 1000) + 1);
	} while (polled < 0 && errno == EINTR);
	if (polled == 0)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "the interpreter was not ready after %d s", IMPORT_TIME_MS / 1000);
	n = fd_recv(z->request_fd, &packet, sizeof(packet), NULL, 0, NULL);
	if (n != (ssize_t)sizeof(packet))
		return fail_start(z, err);
	if (packet.err.code == PALE_OK)
		return 0;
	*err = packet.err;
	return -(int)err->code;
}

static int make_output(int *ret_ours, int *ret_theirs, struct pale_err *err)
{
	int ends[2], r;

	/* It never waits for somebody to read that. */
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a pipe");
	*ret_ours = ends[0];
	*ret_theirs = ends[1];
	r = fd_off_stdio(ret_theirs);
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot move a descriptor") : 0;
}

static int start(struct zygote *z, const struct plan *plan, struct pale_err *err)
{
	_cleanup_close_ int request = -1, library = -1, output = -1;
	struct start how = {.plan = plan, .role = BOX_ZYGOTE, .cgroup_fd = -1};
	int pair[2], r;

	r = check_program(plan, err);
	if (r == 0)
		r = make_output(&z->output_fd, &output, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a socket");
	z->request_fd = pair[0];
	request = pair[1];
	library = program_memfd("pale-zygote", zygote_blob, sizeof(zygote_blob), err);
	if (library < 0)
		return library;
	if (fd_off_stdio(&request) < 0 || fd_off_stdio(&library) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot move a descriptor");
	how.stdio[0] = -1;
	how.stdio[1] = how.stdio[2] = output;
	how.request_fd = request;
	how.library_fd = library;
	z->init_fd = program_memfd("pale-init", init_blob, sizeof(init_blob), err);
	if (z->init_fd < 0)
		return z->init_fd;
	r = box_start(&how, &z->box, err);
	if (r == 0)
		r = isolation_ready(plan, &z->box, err);
	if (r == 0)
		r = isolation_go(plan, &z->box, err);
	return r;
}

int zygote_start(const struct plan *plan, struct zygote **ret, struct pale_err *err)
{
	struct zygote *z = malloc(sizeof(*z));
	int r;

	if (!z)
		return err_nomem(err, STAGE);
	*z = (struct zygote){.box = BOX_INIT, .request_fd = -1, .output_fd = -1, .init_fd = -1};
	r = start(z, plan, err);
	if (r < 0) {
		isolation_done(&z->box);
		zygote_free(z);
		return r;
	}
	*ret = z;
	return 0;
}

int zygote_fd(const struct zygote *z)
{
	return z->request_fd;
}

void zygote_free(struct zygote *z)
{
	if (!z)
		return;
	close_fd(&z->request_fd);
	close_fd(&z->output_fd);
	close_fd(&z->init_fd);
	/* Its first process ends if nobody else holds this; it is not ours to kill. */
	z->box.reaped = true;
	isolation_done(&z->box);
	free(z);
}

int zygote_hold(const struct zygote *z, struct box *box, struct pale_err *err)
{
	const int held[] = {z->box.control_fd, z->box.uid_lock_fd};

	for (size_t i = 0; i < ARRAY_SIZE(held); i++) {
		if (held[i] < 0)
			continue;
		box->lease_fds[i] = fcntl(held[i], F_DUPFD_CLOEXEC, 3);
		if (box->lease_fds[i] < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "cannot keep the zygote's descriptors");
	}
	return 0;
}

/* ---- a fork ---- */

static size_t env_bytes(char *const *env)
{
	size_t bytes = 0;

	for (; *env; env++)
		bytes += strlen(*env) + 1;
	return bytes;
}

/* The variables, those of secrets with the placeholders of this run. */
static int put_env(const struct plan *plan, const char *const *placeholders, struct buf *b,
		   struct pale_err *err)
{
	const struct policy_network *n = placeholders ? plan->network : NULL;

	for (char *const *e = plan->command.env; *e; e++) {
		const char *value = strchr(*e, '=');
		size_t len = value ? (size_t)(value - *e) : 0;
		size_t i = 0;

		while (n && value && strcmp(value + 1, PLAN_PLACEHOLDER) == 0 && i < n->nsecrets &&
		       !(n->secrets[i].env && strlen(n->secrets[i].env) == len &&
			 strncmp(n->secrets[i].env, *e, len) == 0))
			i++;
		if (n && value && strcmp(value + 1, PLAN_PLACEHOLDER) == 0 && i < n->nsecrets) {
			buf_add(b, *e, len + 1);
			buf_add(b, placeholders[i], strlen(placeholders[i]) + 1);
		} else {
			buf_add(b, *e, strlen(*e) + 1);
		}
	}
	return b->failed ? err_nomem(err, STAGE) : 0;
}

static int make_config(const struct plan *plan, const struct box *box, int *ret_fd,
		       struct pale_err *err)
{
	const struct sock_fprog *filter = seccomp_program(plan->profile, plan->seccomp_watch);
	_cleanup_buf_ struct buf b = BUF_INIT(sizeof(struct zygote_config) + (1u << 20));
	struct zygote_config c = {
		.user_range = plan->user_range,
		.uid = plan->uid,
		.gid = plan->gid,
		.attach = plan->host.attach,
		.listens = !(plan->seccomp_watch & SECCOMP_NO_LISTENER),
		.landlock = plan->landlock,
		.affinity = plan->affinity,
		.speculation = plan->side.speculation,
		.core_sched = plan->side.core_sched,
		.rlimits = plan->rlimits,
		.filter_len = filter->len,
	};
	_cleanup_close_ int fd = -1;
	size_t at;
	int r = affinity_get(&c.processors, err);

	if (r < 0)
		return r;
	if (strlen(plan->command.cwd) >= sizeof(c.cwd) ||
	    env_bytes(plan->command.env) > ZYGOTE_ENV_BYTES / 2)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "the environment or the working directory is too long for a fork");
	memcpy(c.cwd, plan->command.cwd, strlen(plan->command.cwd) + 1);
	buf_add(&b, &c, sizeof(c));
	buf_add(&b, filter->filter, filter->len * sizeof(*filter->filter));
	at = b.len;
	r = put_env(plan, box->placeholders, &b, err);
	if (r < 0)
		return r;
	if (b.len - at > ZYGOTE_ENV_BYTES)
		return err_set(err, PALE_E_HOST, STAGE, 0,
			       "the environment is too long for a fork");
	((struct zygote_config *)(void *)b.data)->env_bytes = (uint32_t)(b.len - at);
	fd = memfd_create("pale-fork", MFD_CLOEXEC);
	r = fd < 0 ? -errno : fd_write_all(fd, b.data, b.len);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r,
			       "cannot tell a fork what it is to be");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Puts what the fork is told into its socket, and has the zygote fork. */
static int order(const struct plan *plan, const struct cgroup *cgroup, struct box *box, int ours,
		 int theirs, struct pale_err *err)
{
	_cleanup_close_ int config = -1;
	struct zygote_order o = {.waits = cgroup && !plan->join_cgroup};
	int groups[CGROUP_JOIN_MAX], fds[ZYGOTE_FDS];
	int r = make_config(plan, box, &config, err);

	if (r < 0)
		return r;
	if (cgroup && plan->join_cgroup)
		o.groups = (uint32_t)cgroup_join_fds(cgroup, groups);
	fds[ZYGOTE_BOX] = box->pidfd;
	fds[ZYGOTE_CONFIG] = config;
	fds[ZYGOTE_CHANNEL] = box->channel_fd;
	memcpy(fds + ZYGOTE_STDIO, box->inside_fds, sizeof(box->inside_fds));
	fds[ZYGOTE_RULESET] = box->ruleset_fd >= 0 ? box->ruleset_fd : config;
	memcpy(fds + ZYGOTE_GROUP, groups, o.groups * sizeof(*groups));
	r = fd_send(ours, &o, sizeof(o), fds, ZYGOTE_GROUP + o.groups);
	if (r == 0)
		r = fd_send(box->zygote->request_fd, "", 1, &theirs, 1);
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "the zygote has ended") : 0;
}

static int say(int fd, struct pale_err *err)
{
	int r = fd_send(fd, "", 1, NULL, 0);

	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "the zygote's fork has ended") : 0;
}

/* What the fork says; 1 when it has said all. */
static int take(const struct plan *plan, struct cgroup *cgroup, struct box *box, int fd,
		const struct setup_packet *packet, int came, struct pale_err *err)
{
	struct init_message adopted = {.kind = INIT_ADOPTED, .id = packet->index};
	int r = 0;

	if (packet->err.code != PALE_OK) {
		*err = packet->err;
		return -(int)err->code;
	}
	switch ((enum setup_fd)packet->what) {
	case SETUP_FD_COMMAND:
		if (came < 0 || box->command_pidfd >= 0)
			break;
		box->command_pidfd = fcntl(came, F_DUPFD_CLOEXEC, 3);
		box->command_pid = box->command_pidfd < 0 ? -1 : pid_of(box->command_pidfd);
		if (box->command_pid <= 0)
			break;
		r = fd_send(box->control_fd, &adopted, sizeof(adopted), NULL, 0);
		if (r < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, -r, "the box has ended");
		if (!cgroup || plan->join_cgroup)
			return 0;
		r = cgroup_attach(cgroup, box->command_pid, err);
		return r < 0 ? r : say(fd, err);
	case SETUP_FD_LISTENER:
		if (box->listener_fd >= 0 || box->command_pidfd < 0)
			break;
		box->listener_fd = came >= 0 ? fcntl(came, F_DUPFD_CLOEXEC, 3)
					     : (int)syscall(SYS_pidfd_getfd, box->command_pidfd,
							    (int)packet->index, 0);
		if (box->listener_fd < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "cannot take the listener of the fork's filter");
		return 0;
	case SETUP_FORKED:
		if (box->command_pidfd < 0)
			break;
		r = say(fd, err);
		return r < 0 ? r : 1;
	default: break;
	}
	return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the zygote's fork makes no sense");
}

static int hear(const struct plan *plan, struct cgroup *cgroup, struct box *box, int fd,
		struct pale_err *err)
{
	uint64_t until = clock_mono_us() + ADOPT_TIME_MS * 1000ULL;
	int r = 0;

	while (r == 0) {
		struct pollfd p = {fd, POLLIN, 0};
		struct setup_packet packet;
		_cleanup_close_ int came = -1;
		uint64_t now = clock_mono_us();
		size_t nfds = 0;
		int polled = now >= until ? 0 : poll(&p, 1, (int)((until - now) / 1000) + 1);
		ssize_t n;

		if (polled == 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, 0,
				       "the zygote's fork was not ready after %d s",
				       ADOPT_TIME_MS / 1000);
		if (polled < 0)
			continue;
		n = fd_recv(fd, &packet, sizeof(packet), &came, 1, &nfds);
		if (n != (ssize_t)sizeof(packet))
			return err_set(err, PALE_E_SYSTEM, STAGE, n < 0 ? (int)-n : 0,
				       "the zygote, or its fork, died");
		r = take(plan, cgroup, box, fd, &packet, nfds ? came : -1, err);
	}
	return r < 0 ? r : 0;
}

int isolation_adopt(const struct plan *plan, struct cgroup *cgroup, struct box *box,
		    struct pale_err *err)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a socket");
	ours = pair[0];
	theirs = pair[1];
	r = order(plan, cgroup, box, ours, theirs, err);
	/* Its end is the end of what holds it: the fork's. */
	close_fd(&theirs);
	close_fd(&box->channel_fd);
	close_fd(&box->ruleset_fd);
	for (size_t i = 0; i < ARRAY_SIZE(box->inside_fds); i++)
		close_fd(&box->inside_fds[i]);
	box->zygote = NULL;
	box->placeholders = NULL;
	return r < 0 ? r : hear(plan, cgroup, box, ours, err);
}

/* ---- its end ---- */

/* struct pidfd_info of Linux 6.15; older headers have none of it. */
struct process_info {
	uint64_t mask, cgroupid;
	uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
	int32_t exit_code;
};
#define PROCESS_EXIT	 (1ULL << 3)
#define PROCESS_GET_INFO _IOWR(0xff, 11, struct process_info)

/* The kernel tells it from when the process was reaped, which the zygote's first process does at
 * once; before 6.15 it does not. */
static int exit_status(int pidfd)
{
	struct process_info info = {.mask = PROCESS_EXIT};
	struct pollfd p = {pidfd, 0, 0};

	(void)poll(&p, 1, REAPED_TIME_MS);
	return ioctl(pidfd, PROCESS_GET_INFO, &info) == 0 && (info.mask & PROCESS_EXIT)
		       ? info.exit_code
		       : UNKNOWN_STATUS;
}

void isolation_command_ended(struct box *box)
{
	struct init_message m = {.kind = INIT_END, .value = exit_status(box->command_pidfd)};

	if (fd_send(box->control_fd, &m, sizeof(m), NULL, 0) < 0)
		isolation_kill(box);
}
