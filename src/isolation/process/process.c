/* The process backend, from the supervisor's side: clone, map ids, hand over, wait for the gate.
 *
 * Runs with the caller's privileges, single-threaded. What comes over the control socket is the
 * set-up child's (trusted) until it says INIT_READY, and hostile afterwards. */
#include "process.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "confine/userns.h"
#include "init/protocol.h"
#include "init_blob.h"
#include "isolation/process/zygote_impl.h"
#include "plan/kernel.h"

#define STAGE	      "isolation"
#define READY_TIME_MS 20000

/* A program of ours, as a file that nobody can write to any more, whoever owns what it runs as
 * (CVE-2019-5736). */
int program_memfd(const char *name, const void *program, size_t size, struct pale_err *err)
{
	_cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : fd_write_all(fd, program, size);

	if (r == 0 && fchmod(fd, 0555) < 0)
		r = -errno;
	if (r == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot prepare the program %s", name)
		     : take_fd(&fd);
}

struct pipes {
	int inside[3], outside[3];
};

static void pipes_done(struct pipes *p)
{
	for (int i = 0; i < 3; i++) {
		close_fd(&p->inside[i]);
		close_fd(&p->outside[i]);
	}
}

static int pipes_make(struct pipes *p, struct pale_err *err)
{
	for (int i = 0; i < 3; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a pipe");
		p->inside[i] = ends[i == 0 ? 0 : 1];
		p->outside[i] = ends[i == 0 ? 1 : 0];
	}
	return 0;
}

/* A box's network is made beside the rest (network.c); a zygote has none. */
static pid_t clone_box(enum box_role role, int cgroup_fd, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_NEWCGROUP | CLONE_PIDFD |
			 (role == BOX_ZYGOTE ? CLONE_NEWNET : 0ULL) |
			 (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0ULL),
		.cgroup = (__u64)(cgroup_fd >= 0 ? cgroup_fd : 0),
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static int fail_clone(struct pale_err *err)
{
	int sys = errno;
	char remedy[256];

	host_userns_remedy(remedy, sizeof(remedy));
	err_set(err, PALE_E_HOST, STAGE, sys, "cannot make the box's namespaces");
	err_add(err, "%s%s; `pale doctor` says more", *remedy ? ": " : "", remedy);
	return -PALE_E_HOST;
}

/* A caller that the out-of-memory killer spares (a service, a login daemon) must not hand that on:
 * a box at its memory limit would stand still, and the host could lose others to it. As root this
 * also moves the bound below which the box cannot set it itself. */
static int give_up_oom_grace(pid_t pid, struct pale_err *err)
{
	_cleanup_close_ int own = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC),
			    of_box = -1;
	char text[16] = "", path[48];
	ssize_t n = own < 0 ? -1 : read(own, text, sizeof(text) - 1);

	if (n < 0 || text[0] != '-')
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	of_box = open(path, O_WRONLY | O_CLOEXEC);
	if (of_box < 0 || write(of_box, "0", 1) != 1)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot let the out-of-memory killer have the box");
	return 0;
}

/* The child may rely on what it is now. */
static int let_go(struct box *box, struct pale_err *err)
{
	struct source_packet packet = {.count = 0};
	int r = fd_send(box->control_fd, &packet, sizeof(packet), NULL, 0);

	if (child_gone(r))
		return 0;
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot speak to the set-up child")
		     : 0;
}

/* The two ends of a pair of packet sockets. */
static int make_pair(int *ret_ours, int *ret_theirs, struct pale_err *err)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a socket");
	*ret_ours = pair[0];
	*ret_theirs = pair[1];
	r = fd_off_stdio(ret_theirs);
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot move a descriptor") : 0;
}

/* What the command has from outside: it goes to the set-up child, or stays here until there is one.
 */
static int make_command(const struct plan *plan, enum box_role role, struct pipes *pipes,
			struct setup *setup, struct box *ret, struct pale_err *err)
{
	size_t host_size;
	const void *host = plan->kernel ? kernel_host(plan->kernel, &host_size) : NULL;
	int r = 0;

	if (role == BOX_ZYGOTE)
		return 0;
	if (!plan->command.tty)
		r = pipes_make(pipes, err);
	for (int i = 0; r == 0 && i < 3 && !plan->command.tty; i++) {
		r = fd_off_stdio(&pipes->inside[i]);
		if (r < 0)
			err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot move a descriptor");
	}
	if (r == 0 && plan->kernel)
		r = make_pair(&ret->kernel_fd, &setup->kernel_fd, err);
	if (r == 0 && host && role == BOX_PLAIN) {
		setup->program_fd = program_memfd("pale-kernel", host, host_size, err);
		r = setup->program_fd < 0 ? setup->program_fd : 0;
		if (r == 0 && fd_off_stdio(&setup->program_fd) < 0)
			r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot move a descriptor");
	}
	return r;
}

static void setup_done(struct setup *s)
{
	close_fd(&s->control_fd);
	close_fd(&s->init_fd);
	close_fd(&s->kernel_fd);
	close_fd(&s->program_fd);
}

/* Root: the ids, unless they are mapped already, and the mounts of what the box sees of the host.
 * The child waits for both, and has not limited itself yet. */
static int give_ids(const struct start *how, unsigned base, const struct box *box,
		    struct pale_err *err)
{
	_cleanup_close_ int mapping = -1;
	unsigned first, end;
	int r = rlimits_raise(&how->plan->rlimits, box->pid, err);

	uid_range_all(&first, &end);
	if (r == 0 && how->role == BOX_PLAIN)
		r = userns_map_range(box->pid, base, err);
	if (r == 0 && how->role == BOX_ZYGOTE) {
		r = userns_map_ranges(box->pid, base, first, end, err);
		/* Its own mounts show the ids of a single box. */
		if (r == 0)
			r = mapping = userns_swapped(base, 0, 0, 0, 0, err);
	}
	return r < 0 ? r
		     : source_send_mapped(how->plan, how->role,
					  mapping >= 0 ? mapping : box->userns_fd, base,
					  box->control_fd, err);
}

int box_start(const struct start *how, struct box *ret, struct pale_err *err)
{
	const struct plan *plan = how->plan;
	_cleanup_(pipes_done) struct pipes pipes = {{-1, -1, -1}, {-1, -1, -1}};
	_cleanup_(setup_done) struct setup setup = {.plan = plan,
						    .role = how->role,
						    .placeholders = how->placeholders,
						    .control_fd = -1,
						    .init_fd = -1,
						    .stdio = {-1, -1, -1},
						    .kernel_fd = -1,
						    .program_fd = -1,
						    .request_fd = how->request_fd,
						    .library_fd = how->library_fd};
	unsigned base = 0;
	int r;

	*ret = BOX_INIT;
	setup.init_fd = how->zygote ? fcntl(how->zygote->init_fd, F_DUPFD_CLOEXEC, 3)
				    : program_memfd("pale-init", init_blob, sizeof(init_blob), err);
	if (setup.init_fd < 0)
		return how->zygote ? err_set(err, PALE_E_SYSTEM, STAGE, errno,
					     "cannot keep a descriptor")
				   : setup.init_fd;
	if (fd_off_stdio(&setup.init_fd) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot move a descriptor");
	r = make_command(plan, how->role, &pipes, &setup, ret, err);
	if (r == 0)
		r = make_pair(&ret->control_fd, &setup.control_fd, err);
	if (r == 0 && plan->user_range)
		r = uid_range_take(&base, &ret->uid_lock_fd, err);
	if (r < 0)
		return r;
	if (plan->ncollect && how->role != BOX_ZYGOTE) {
		ret->collect_fds = malloc(plan->ncollect * sizeof(int));
		if (!ret->collect_fds)
			return err_nomem(err, STAGE);
		memset(ret->collect_fds, 0xff, plan->ncollect * sizeof(int));
		ret->ncollect = plan->ncollect;
	}
	if (plan->kernel && plan->noverlays && how->role != BOX_ZYGOTE) {
		ret->lower_fds = malloc(plan->noverlays * sizeof(int));
		if (!ret->lower_fds)
			return err_nomem(err, STAGE);
		memset(ret->lower_fds, 0xff, plan->noverlays * sizeof(int));
		ret->nlower = plan->noverlays;
	}

	setup.peer_fd = ret->control_fd;
	for (int i = 0; i < 3; i++)
		setup.stdio[i] = how->role == BOX_ZYGOTE  ? how->stdio[i]
				 : how->role == BOX_PLAIN ? pipes.inside[i]
							  : -1;
	r = affinity_get(&setup.processors, err);
	if (r == 0 && how->role == BOX_ADOPTS) {
		r = zygote_hold(how->zygote, ret, err);
		ret->zygote = how->zygote;
		ret->placeholders = how->placeholders;
		if (r == 0)
			r = birth(how->zygote, &setup, base, ret, err);
		ret->channel_fd = take_fd(&setup.kernel_fd);
		for (int i = 0; i < 3; i++)
			ret->inside_fds[i] = take_fd(&pipes.inside[i]);
	} else if (r == 0) {
		ret->pid = clone_box(how->role, how->cgroup_fd, &ret->pidfd);
		if (ret->pid < 0)
			return fail_clone(err);
		if (ret->pid == 0)
			setup_run(&setup);
	}
	if (r < 0)
		return r;
	affinity_spread(ret->pid, &setup.processors);

	ret->host_uid = plan->user_range ? base + plan->uid : plan->host.uid;
	ret->host_gid = plan->user_range ? base + plan->gid : plan->host.gid;
	ret->stdin_fd = take_fd(&pipes.outside[0]);
	ret->stdout_fd = take_fd(&pipes.outside[1]);
	ret->stderr_fd = take_fd(&pipes.outside[2]);
	r = give_up_oom_grace(ret->pid, err);
	if (r < 0)
		return r;
	if (plan->user_range || plan->noverlays || plan->ncollect) {
		char path[64];

		/* For what is read of the box at the end: its modes are no obstacle there. */
		snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)ret->pid);
		ret->userns_fd = open(path, O_RDONLY | O_CLOEXEC);
		if (ret->userns_fd < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "cannot open the box's user namespace");
	}
	return plan->user_range ? give_ids(how, base, ret, err) : let_go(ret, err);
}

int isolation_start(const struct plan *plan, const char *const *placeholders, int cgroup_fd,
		    struct zygote *zygote, struct box *ret, struct pale_err *err)
{
	const struct start how = {
		.plan = plan,
		.role = zygote ? BOX_ADOPTS : BOX_PLAIN,
		.placeholders = placeholders,
		.cgroup_fd = cgroup_fd,
		.zygote = zygote,
		.stdio = {-1, -1, -1},
		.request_fd = -1,
		.library_fd = -1,
	};

	return box_start(&how, ret, err);
}

int isolation_attached(struct box *box, struct pale_err *err)
{
	return let_go(box, err);
}

int isolation_join(struct box *box, const int *fds, size_t n, struct pale_err *err)
{
	struct source_packet packet = {.count = (uint32_t)n};
	int r = fd_send(box->control_fd, &packet, sizeof(packet), fds, n);

	if (child_gone(r))
		return 0;
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot hand over the cgroup") : 0;
}

static int place_fd(struct box *box, const struct setup_packet *p, int fd)
{
	int *slot = NULL;

	switch ((enum setup_fd)p->what) {
	case SETUP_FD_NONE:
	case SETUP_FD_EGRESS:
	case SETUP_FD_COMMAND:
	case SETUP_FORKED: break;
	case SETUP_FD_RULESET: slot = &box->ruleset_fd; break;
	case SETUP_FD_LISTENER: slot = &box->listener_fd; break;
	case SETUP_FD_ROOT: slot = &box->root_fd; break;
	case SETUP_FD_DATA: slot = &box->data_fd; break;
	case SETUP_FD_TTY: slot = &box->tty_fd; break;
	case SETUP_FD_AGENT: slot = &box->agent_fd; break;
	case SETUP_FD_SHM: slot = &box->shm_fd; break;
	case SETUP_FD_VIEW:
		if (p->index < VIEW_COUNT)
			slot = &box->view_fds[p->index];
		break;
	case SETUP_FD_COLLECT:
		if (p->index < box->ncollect)
			slot = &box->collect_fds[p->index];
		break;
	case SETUP_FD_LOWER:
		if (p->index < box->nlower)
			slot = &box->lower_fds[p->index];
		break;
	}
	if (!slot || *slot >= 0) {
		close(fd);
		return -EPROTO;
	}
	*slot = fd;
	return 0;
}

static void close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close_fd(&fds[i]);
}

/* What came along with a packet; all of it is ours to close from here on. */
static int place_fds(struct box *box, const struct setup_packet *p, int *fds, size_t n)
{
	if (p->what == SETUP_FD_EGRESS && n == EGRESS_NSOCKETS && !box->has_egress) {
		memcpy(box->egress_fds, fds, sizeof(box->egress_fds));
		box->has_egress = true;
		return 0;
	}
	if (n == 1)
		return place_fd(box, p, fds[0]);
	close_all(fds, n);
	return -EPROTO;
}

/* The listener, by its number in the child or in what it has become: it is open there until the
 * gate opens. */
static int take_listener(struct box *box, const struct setup_packet *p, int *ret_fd,
			 struct pale_err *err)
{
	*ret_fd = (int)syscall(SYS_pidfd_getfd, box->pidfd, (int)p->index, 0);
	return *ret_fd < 0 ? err_set(err, PALE_E_HOST, STAGE, errno,
				     "cannot take the listener of the box's seccomp filter "
				     "(pidfd_getfd)")
			   : 0;
}

void isolation_yield(const struct box *box)
{
	struct pollfd p = {box->control_fd, POLLIN, 0};

	(void)poll(&p, 1, READY_TIME_MS);
}

/* Takes what the child says, until it stands at its gate or, if only that is waited for, its
 * network is there. */
static int hear(struct box *box, bool network_only, struct pale_err *err)
{
	uint64_t until = clock_mono_us() + READY_TIME_MS * 1000ULL;

	while (!network_only || !box->has_egress) {
		union {
			struct setup_packet setup;
			struct init_message init;
		} packet = {0};
		struct pollfd p = {box->control_fd, POLLIN, 0};
		uint64_t now = clock_mono_us();
		int fds[EGRESS_NSOCKETS];
		size_t nfds = 0;
		ssize_t n;

		int polled = now >= until ? 0 : poll(&p, 1, (int)((until - now) / 1000) + 1);

		if (polled == 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, 0,
				       "the box was not ready after %d s", READY_TIME_MS / 1000);
		if (polled < 0)
			continue; /* a signal: the receiving below would wait without a limit */
		n = fd_recv(box->control_fd, &packet, sizeof(packet), fds, EGRESS_NSOCKETS, &nfds);
		/* It died before it had read all of ours: said once, and before what it said
		 * itself. */
		if (n == -ECONNRESET)
			continue;
		if (n == (ssize_t)sizeof(struct setup_packet)) {
			if (packet.setup.err.code != PALE_OK) {
				close_all(fds, nfds);
				*err = packet.setup.err;
				return -(int)err->code;
			}
			if (nfds == 0 && packet.setup.what == SETUP_FD_NONE)
				continue;
			if (nfds == 0 && packet.setup.what == SETUP_FD_LISTENER) {
				int r = take_listener(box, &packet.setup, fds, err);

				if (r < 0)
					return r;
				nfds = 1;
			}
			if (place_fds(box, &packet.setup, fds, nfds) == 0)
				continue;
		} else if (n == (ssize_t)sizeof(struct init_message) &&
			   packet.init.kind == INIT_READY && !nfds) {
			return 0;
		} else {
			close_all(fds, nfds);
		}
		return err_set(err, PALE_E_SYSTEM, STAGE, n < 0 ? (int)-n : 0,
			       "the box died while it was set up");
	}
	return 0;
}

int isolation_network(struct box *box, struct pale_err *err)
{
	return hear(box, true, err);
}

int isolation_ready(const struct plan *plan, struct box *box, struct pale_err *err)
{
	(void)plan;
	return hear(box, false, err);
}

int isolation_go(const struct plan *plan, struct box *box, struct pale_err *err)
{
	struct init_message go = {.kind = INIT_GO, .value = plan_waits_for_group(plan)};
	int r = fd_send(box->control_fd, &go, sizeof(go), NULL, 0);

	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot open the box's gate") : 0;
}

int isolation_signal(struct box *box, int signal_number)
{
	struct init_message m = {.kind = INIT_SIGNAL, .value = signal_number};

	return fd_send(box->control_fd, &m, sizeof(m), NULL, 0);
}

int isolation_kill_one(struct box *box, int32_t pid, int signal_number, bool group)
{
	struct init_message m = {.kind = INIT_KILL,
				 .value = signal_number,
				 .id = (uint32_t)pid,
				 .type = group ? 1 : 0};

	return fd_send(box->control_fd, &m, sizeof(m), NULL, 0);
}

int isolation_pause(struct box *box, bool stop, bool exact)
{
	struct init_message m = {
		.kind = INIT_PAUSE, .value = stop ? SIGSTOP : SIGCONT, .type = exact ? 1 : 0};

	return fd_send(box->control_fd, &m, sizeof(m), NULL, 0);
}

void isolation_kill(struct box *box)
{
	if (box->pidfd >= 0 && !box->reaped)
		syscall(SYS_pidfd_send_signal, box->pidfd, SIGKILL, NULL, 0);
}

void isolation_reap(struct box *box)
{
	if (box->pid <= 0 || box->reaped)
		return;
	while (wait4(box->pid, &box->wait_status, __WALL, &box->usage) < 0 && errno == EINTR)
		;
	box->reaped = true;
}

void isolation_done(struct box *box)
{
	isolation_kill(box);
	isolation_reap(box);
	for (size_t i = 0; i < box->ncollect; i++)
		close_fd(&box->collect_fds[i]);
	free(box->collect_fds);
	for (size_t i = 0; i < box->nlower; i++)
		close_fd(&box->lower_fds[i]);
	free(box->lower_fds);
	close_fd(&box->pidfd);
	close_fd(&box->control_fd);
	close_fd(&box->listener_fd);
	close_fd(&box->root_fd);
	close_fd(&box->data_fd);
	close_fd(&box->userns_fd);
	close_fd(&box->stdin_fd);
	close_fd(&box->stdout_fd);
	close_fd(&box->stderr_fd);
	close_fd(&box->tty_fd);
	close_fd(&box->kernel_fd);
	close_fd(&box->agent_fd);
	close_fd(&box->shm_fd);
	for (size_t i = 0; i < VIEW_COUNT; i++)
		close_fd(&box->view_fds[i]);
	if (box->has_egress)
		close_all(box->egress_fds, EGRESS_NSOCKETS);
	close_fd(&box->uid_lock_fd);
	close_fd(&box->command_pidfd);
	close_fd(&box->ruleset_fd);
	close_fd(&box->channel_fd);
	close_all(box->inside_fds, ARRAY_SIZE(box->inside_fds));
	/* The last: with it may go what our first process is reaped by. */
	close_all(box->lease_fds, ARRAY_SIZE(box->lease_fds));
	*box = BOX_INIT;
}
