/* The set-up child: from clone3() to the exec of the box's first process.
 *
 * It starts as a copy of the supervisor in fresh namespaces, where it holds every capability, and
 * outside of which it holds none. It runs no code and reads no data of the box. The order matters
 * and is the order of setup(): what needs a capability comes before the capabilities go; what
 * the seccomp filter forbids comes before the filter; descriptors leave before the exec closes
 * them. Whatever fails ends the process, and the supervisor is told why. */
#include "process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>

#include "base/fd.h"
#include "base/str.h"
#include "confine/affinity.h"
#include "confine/landlock.h"
#include "confine/rlimits.h"
#include "confine/seccomp.h"
#include "confine/userns.h"

#define STAGE "isolation"

static int report(const struct setup *s, enum setup_fd what, unsigned index, int fd,
		  struct pale_err *err)
{
	struct setup_packet packet = {.what = what, .index = index};
	int r;

	if (fd < 0)
		return 0;
	r = fd_send(s->control_fd, &packet, sizeof(packet), &fd, 1);
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r,
			       "cannot hand a descriptor to the supervisor")
		     : 0;
}

/* From here on the supervisor changes nothing of us from outside. */
static int await_supervisor(const struct setup *s, struct pale_err *err)
{
	struct source_packet packet;
	ssize_t n = fd_recv(s->control_fd, &packet, sizeof(packet), NULL, 0, NULL);

	return n != (ssize_t)sizeof(packet) || packet.count != 0
		       ? err_set(err, PALE_E_SYSTEM, STAGE, n < 0 ? (int)-n : 0,
				 "the supervisor went away")
		       : 0;
}

/* Root: the supervisor maps the ids. */
static int await_ids(const struct setup *s, struct pale_err *err)
{
	int r = await_supervisor(s, err);

	if (r < 0)
		return r;
	/* Become root of the box's range, so that what is made here has an owner in it. */
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot become root of the user namespace");
	/* Changing ids cleared it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot tie the box to its supervisor");
	return 0;
}

/* v1: only a process that moves itself is moved quickly (see cgroup_join_fds()). */
static int join_cgroup(const struct setup *s, struct pale_err *err)
{
	struct source_packet packet;
	int fds[CGROUP_JOIN_MAX];
	size_t nfds = 0;
	ssize_t n;
	int r;

	if (s->role == BOX_ZYGOTE)
		return 0;
	/* Before anything is forked, which would stay outside. */
	if (plan_waits_for_group(s->plan) ||
	    (s->role == BOX_ADOPTS && s->plan->use_cgroup && !s->plan->join_cgroup))
		return await_supervisor(s, err);
	if (!s->plan->join_cgroup)
		return 0;
	n = fd_recv(s->control_fd, &packet, sizeof(packet), fds, CGROUP_JOIN_MAX, &nfds);
	if (n != (ssize_t)sizeof(packet))
		return err_set(err, PALE_E_SYSTEM, STAGE, n < 0 ? (int)-n : 0,
			       "the supervisor went away");
	r = cgroup_join(fds, nfds);
	return r < 0 ? err_set(err, PALE_E_SYSTEM, "confine", -r, "cannot join the box's cgroup")
		     : 0;
}

/* Root: the mounts of the sources, made by the supervisor meanwhile. */
static int receive_sources(const struct setup *s, struct mounts *m, struct pale_err *err)
{
	for (;;) {
		struct source_packet packet;
		int fds[SOURCES_A_PACKET];
		size_t nfds = 0;
		ssize_t n = fd_recv(s->control_fd, &packet, sizeof(packet), fds, SOURCES_A_PACKET,
				    &nfds);

		if (n != (ssize_t)sizeof(packet))
			return err_set(err, PALE_E_SYSTEM, STAGE, n < 0 ? (int)-n : 0,
				       "the supervisor went away");
		if (packet.count == SOURCE_PACKET_END)
			return 0;
		if (nfds != packet.count)
			return err_set(err, PALE_E_SYSTEM, STAGE, 0,
				       "a malformed packet from the supervisor");
		for (size_t i = 0; i < nfds; i++) {
			if (packet.step[i] >= s->plan->nsteps)
				return err_set(err, PALE_E_SYSTEM, STAGE, 0,
					       "a malformed packet from the supervisor");
			m->sources[packet.step[i]] = fds[i];
		}
	}
}

static int set_up_files(const struct setup *s, struct mounts *m, struct helper *leave,
			struct pale_err *err)
{
	const struct plan *plan = s->plan;
	int r = plan->user_range ? receive_sources(s, m, err) : 0, shm = -1;

	if (r == 0)
		r = mounts_open_sources(m, err);

	for (size_t i = 0; r == 0 && i < plan->nsteps; i++)
		r = mounts_step(m, &plan->steps[i], i, err);
	if (r == 0)
		r = mounts_leave(leave, err);
	if (r == 0)
		r = report(s, SETUP_FD_DATA, 0, m->data_fd, err);
	if (r == 0)
		r = report(s, SETUP_FD_AGENT, 0, m->agent_fd, err);
	/* It shows the namespace of whoever opened it. Kernels without System V IPC have none. */
	if (r == 0 && plan->sample_memory)
		shm = open("/proc/sysvipc/shm", O_RDONLY | O_CLOEXEC);
	if (r == 0)
		r = report(s, SETUP_FD_SHM, 0, shm, err);
	for (unsigned i = 0; r == 0 && i < VIEW_COUNT; i++)
		r = report(s, SETUP_FD_VIEW, i, m->view_fds[i], err);
	for (size_t i = 0; r == 0 && i < plan->ncollect && s->role != BOX_ZYGOTE; i++)
		r = report(s, SETUP_FD_COLLECT, (unsigned)i, m->collect_fds[i], err);
	for (size_t i = 0; r == 0 && plan->kernel && i < plan->noverlays && s->role != BOX_ZYGOTE;
	     i++)
		r = report(s, SETUP_FD_LOWER, (unsigned)i, m->lower_fds[i], err);
	return r;
}

/* The pty comes from the box's own devpts, so that its name means something inside. */
static int open_terminal(const struct setup *s, int *ret_slave, struct pale_err *err)
{
	_cleanup_close_ int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC),
			    slave = -1;
	int unlock = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open a pty");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open the pty's other end");
	if (s->plan->user_range && fchown(slave, s->plan->uid, s->plan->gid) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot give the pty to the box's user");
	*ret_slave = take_fd(&slave);
	return report(s, SETUP_FD_TTY, 0, master, err);
}

static int set_stdio(const struct setup *s, int slave, struct pale_err *err)
{
	_cleanup_close_ int null = -1;

	for (int i = 0; i < 3; i++) {
		int fd = slave >= 0 ? slave : s->stdio[i];

		if (fd < 0 && null < 0)
			null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (dup2(fd < 0 ? null : fd, i) < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "cannot set up the standard streams");
	}
	return 0;
}

static int make_ruleset(const struct plan *plan, enum box_role role, struct landlock **ret,
			struct pale_err *err)
{
	_cleanup_landlock_ struct landlock *l = NULL;
	int r = landlock_new(&plan->host.landlock, &l, err);

	if (r == 0 && role != BOX_PLAIN)
		r = landlock_files_only(l, err);
	else if (r == 0 && plan->profile == PROFILE_NESTED)
		r = landlock_scope_only(l, err);
	if (r < 0)
		return r;
	/* The first process of a zygote's own box opens nothing. */
	for (size_t i = 0;
	     i < plan->nrules && role != BOX_ZYGOTE && plan->profile != PROFILE_NESTED; i++) {
		_cleanup_close_ int fd = open(plan->rules[i].path, O_PATH | O_CLOEXEC);

		if (fd < 0)
			return err_set(err, PALE_E_SYSTEM, "confine", errno,
				       "cannot open %s for Landlock", QUOTED(plan->rules[i].path));
		r = landlock_allow_path(l, fd, plan->rules[i].access, err);
		if (r < 0)
			return r;
	}
	*ret = take_ptr(l);
	return 0;
}

/* What the last steps need. */
struct last {
	const struct setup *s;
	struct helper *leave;
};

/* A zygote's fork gets the rules of any command. The first process, whom the fork's domain is none
 * of its own, could then not signal it: its own rules are about files only. */
static int restrict_files(void *arg, struct pale_err *err)
{
	const struct last *last = arg;
	const struct setup *s = last->s;
	_cleanup_landlock_ struct landlock *own = NULL, *command = NULL;
	int r = 0;

	if (s->plan->landlock && s->role == BOX_ADOPTS) {
		r = make_ruleset(s->plan, BOX_PLAIN, &command, err);
		if (r == 0)
			r = report(s, SETUP_FD_RULESET, 0, landlock_ruleset(command), err);
	}
	/* In the nested profile files are left alone. */
	if (r == 0 && s->plan->landlock &&
	    !(s->role == BOX_ADOPTS && s->plan->profile == PROFILE_NESTED)) {
		r = make_ruleset(s->plan, s->role, &own, err);
		if (r == 0)
			r = landlock_restrict_self(own, err);
	}
	return r < 0 ? r : mounts_left(last->leave, err);
}

/* The variables of secrets get the placeholders of this run. The plan is this process's own copy.
 */
static int set_placeholders(const struct setup *s, struct pale_err *err)
{
	const struct policy_network *n = s->plan->network;

	for (size_t i = 0; s->placeholders && i < n->nsecrets; i++) {
		const char *name = n->secrets[i].env;
		size_t len = name ? strlen(name) : 0;

		for (char **e = s->plan->command.env; name && *e; e++)
			if (strncmp(*e, name, len) == 0 && (*e)[len] == '=' &&
			    strcmp(*e + len + 1, PLAN_PLACEHOLDER) == 0 &&
			    asprintf(e, "%s=%s", name, s->placeholders[i]) < 0)
				return err_nomem(err, STAGE);
	}
	return 0;
}

/* argv[1] of the first process; see init/protocol.h. */
static int exec_init(const struct setup *s, int dns_fd, int listener, struct pale_err *err)
{
	const struct plan_command *c = &s->plan->command;
	_cleanup_free_ char **argv = NULL;
	char handover[96];
	size_t argc = 0;

	while (c->argv[argc])
		argc++;
	if (s->role != BOX_PLAIN)
		argc = 0;
	argv = calloc(argc + 4, sizeof(*argv));
	if (!argv)
		return err_nomem(err, STAGE);
	snprintf(handover, sizeof(handover), "%d,%d,%d,%d,%d,%d", s->control_fd, dns_fd, listener,
		 c->tty ? 1 : 0, s->kernel_fd, s->program_fd);
	argv[0] = (char *)(uintptr_t) "pale-init";
	argv[1] = handover;
	argv[2] = s->role == BOX_PLAIN ? c->program : NULL;
	memcpy(argv + 3, c->argv, argc * sizeof(*argv));
	/* These, the listener, and descriptors 0 to 2 are all that goes along. */
	if (fcntl(s->control_fd, F_SETFD, 0) < 0 ||
	    (dns_fd >= 0 && fcntl(dns_fd, F_SETFD, 0) < 0) ||
	    (s->kernel_fd >= 0 && fcntl(s->kernel_fd, F_SETFD, 0) < 0) ||
	    (s->program_fd >= 0 && fcntl(s->program_fd, F_SETFD, 0) < 0))
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot keep the control descriptor");
	if (set_placeholders(s, err) < 0)
		return -(int)err->code;
	syscall(SYS_execveat, s->init_fd, "", argv, c->env, AT_EMPTY_PATH);
	return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot start the first process");
}

static int setup(const struct setup *s, struct pale_err *err)
{
	const struct plan *plan = s->plan;
	struct mounts m = {.plan = plan,
			   .placeholders = s->placeholders,
			   .role = s->role,
			   .scratch = -1,
			   .view_fds = {-1, -1, -1, -1, -1, -1},
			   .data_fd = -1,
			   .agent_fd = -1};
	/* Not on the stack: should we fail, the helpers still run while we report it. */
	static struct network network;
	static struct helper leave;
	struct last last = {s, &leave};
	/* What it starts has a listener; a first process that starts nothing has none. */
	struct lockdown end = {
		.plan = plan,
		.cwd = s->role == BOX_ZYGOTE ? "/" : plan->command.cwd,
		.filter =
			seccomp_program(plan->profile, s->role == BOX_PLAIN ? plan->seccomp_watch
									    : SECCOMP_NO_LISTENER),
		.listens = s->role == BOX_PLAIN && !(plan->seccomp_watch & SECCOMP_NO_LISTENER),
		.shared_keyring = s->shared_keyring,
		.control_fd = s->control_fd,
		.rlimits = s->role == BOX_ZYGOTE ? NULL : &plan->rlimits,
		.restrict_files = restrict_files,
		.arg = &last,
	};
	int r, slave = -1, listener = -1, root;

	/* Freed by the exec. */
	m.sources = malloc((plan->nsteps + 1) * sizeof(int));
	m.collect_fds = malloc((plan->ncollect + 1) * sizeof(int));
	m.lower_fds = malloc((plan->noverlays + 1) * sizeof(int));
	if (!m.sources || !m.collect_fds || !m.lower_fds)
		return err_nomem(err, STAGE);
	memset(m.sources, 0xff, (plan->nsteps + 1) * sizeof(int));
	memset(m.collect_fds, 0xff, (plan->ncollect + 1) * sizeof(int));
	memset(m.lower_fds, 0xff, (plan->noverlays + 1) * sizeof(int));

	/* A supervisor that was killed before this line sends no signal: then the control socket
	 * says so, but only if we do not hold the other end ourselves. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || close(s->peer_fd) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno,
			       "cannot tie the box to its supervisor");
	/* What the first process cannot do without, asked while somebody hears it. */
	if (syscall(SYS_close_range, ~0U, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return err_set(err, PALE_E_HOST, STAGE, errno,
			       "cannot keep descriptors from the command (close_range)");
	/* What is made below has the modes that the plan says, whatever the caller's umask is. */
	umask(0);
	/* In a zygote's user namespace the caller has the number already that it has in a box. */
	if (plan->user_range)
		r = await_ids(s, err);
	else if (s->role == BOX_ADOPTS)
		r = userns_map_self(plan->uid, plan->gid, plan->uid, plan->gid, err);
	else
		r = userns_map_self(plan->host.uid, plan->host.gid, plan->uid, plan->gid, err);
	network.dns_fd = -1;
	if (r == 0 && s->role != BOX_ZYGOTE)
		r = network_start(&network, s, err);
	if (r == 0)
		r = set_up_files(s, &m, &leave, err);
	if (r == 0 && sethostname("pale", 4) < 0)
		r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot set the host name");
	/* Those of all its boxes count as a zygote's, too. */
	if (r == 0 && s->role != BOX_ZYGOTE)
		r = userns_bound_counts(err);
	if (r == 0)
		r = mounts_close_proc(plan, err);
	if (r == 0 && s->role != BOX_ZYGOTE)
		r = network_enter(&network, err);
	if (r == 0 && plan->command.tty)
		r = open_terminal(s, &slave, err);
	if (r == 0)
		r = set_stdio(s, slave, err);
	if (r < 0)
		return r;
	/* A session of its own: no way to the caller's terminal, no signals to its job. */
	if (setsid() < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot start a session");
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = report(s, SETUP_FD_ROOT, 0, root, err);
	/* Or it could widen what is narrowed here. */
	if (r == 0 && !plan->user_range)
		r = await_supervisor(s, err);
	if (r == 0)
		r = affinity_narrow(plan->affinity, &s->processors, err);
	if (r == 0)
		r = join_cgroup(s, err);
	if (r == 0 && s->role == BOX_ZYGOTE)
		r = zygote_spawn(s, err);
	if (r == 0)
		r = lockdown(&end, &listener, err);
	/* It lasts as long as somebody holds the control socket, whoever that is. */
	if (r == 0 && s->role == BOX_ZYGOTE && prctl(PR_SET_PDEATHSIG, 0) < 0)
		r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot outlive the caller");
	return r < 0 ? r : exec_init(s, network.dns_fd, listener, err);
}

_Noreturn void setup_run(const struct setup *s)
{
	struct setup_packet packet = {.err = {.code = PALE_OK}};
	int r = setup(s, &packet.err);

	/* Not sendmsg(): under the filter that would wait for an answer by the listener, which may
	 * still be in this process only. */
	if (r < 0)
		(void)!send(s->control_fd, &packet, sizeof(packet), MSG_NOSIGNAL);
	_exit(1);
}
