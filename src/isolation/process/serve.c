/* The zygote's own part: forks into boxes. A shared library that the interpreter loads (from a
 * sealed memory file, zygote_wire.h), so that the driver's process is the one that forks.
 *
 * pale_serve() runs in the zygote, single-threaded, without a capability. A request is carried out
 * by two processes. The first (vfork: it shares the zygote's memory while that waits) enters the
 * box's control groups and namespaces, in whose user namespace it has every capability because the
 * zygote's user owns it, and forks. The fork is then in the box's process namespace, is nobody's
 * child there, gives everything up (lockdown.c), closes what is the zygote's, and returns into the
 * driver as the box's kernel. The C library's fork(), because libraries with threads (OpenBLAS)
 * hang handlers on it.
 *
 * Nothing here is hostile: no code of a box has run in any of these processes. What the zygote has
 * in memory each fork has, so it takes nothing that is a box's. */
#include "process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/str.h"
#include "confine/cgroup.h"
#include "confine/landlock.h"
#include "isolation/process/zygote_wire.h"

#define STAGE	   "isolation"
#define FD_CHANNEL 3 /* of the kernel, as init would give it */
#define FD_BOX	   4 /* its socket; until it is done */
#define FD_HIGH	   64

/* What has come for a fork. */
struct fork_fds {
	int sock;
	struct zygote_order order;
	int fds[ZYGOTE_FDS];
	size_t n;
};

static void fail(int sock, struct pale_err *err)
{
	struct setup_packet packet = {.err = *err};

	(void)!send(sock, &packet, sizeof(packet), MSG_NOSIGNAL);
	_exit(1);
}

static int tell(int sock, enum setup_fd what, unsigned index)
{
	struct setup_packet packet = {.what = what, .index = index};

	return send(sock, &packet, sizeof(packet), MSG_NOSIGNAL) == (ssize_t)sizeof(packet)
		       ? 0
		       : -EPIPE;
}

/* The supervisor has done its part. */
static int await(int sock, struct pale_err *err)
{
	char byte;
	ssize_t n;

	do
		n = recv(sock, &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	return n == 1 ? 0
		      : err_set(err, PALE_E_SYSTEM, STAGE, n < 0 ? errno : 0,
				"the supervisor went away");
}

/* ---- is it fit to be forked? ---- */

/* Memory that a fork would share with all others, written by each. */
static int check_memory(struct pale_err *err)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512], name[256] = "";

	if (!f)
		return err_set(err, PALE_E_HOST, STAGE, errno,
			       "cannot look at the zygote's memory");
	while (fgets(line, sizeof(line), f)) {
		const char *flags = strncmp(line, "VmFlags:", 8) == 0 ? line : NULL;

		/* A mapping begins with its addresses, in small letters. */
		if (strchr("0123456789abcdef", line[0])) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(name, sizeof(name), "%.255s", line);
		}
		if (flags && strstr(flags, " sh") && strstr(flags, " mw")) {
			fclose(f);
			return err_set(err, PALE_E_HOST, STAGE, 0,
				       "a module that was imported has memory that all boxes would "
				       "share (%s)",
				       QUOTED(name));
		}
	}
	fclose(f);
	return 0;
}

static int check_threads(struct pale_err *err)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long threads = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "Threads:", 8) == 0)
			threads = strtol(line + 8, NULL, 10);
	if (f)
		fclose(f);
	return threads == 1
		       ? 0
		       : err_set(err, PALE_E_HOST, STAGE, 0,
				 "a module that was imported has started threads, which a fork "
				 "does not have");
}

/* ---- the fork ---- */

static int restrict_files(void *arg, struct pale_err *err)
{
	const int *ruleset = arg;

	return *ruleset < 0 ? 0 : landlock_restrict_to(*ruleset, err);
}

/* Its descriptors are 0 to 3 and the socket, until that is done with. */
static int place(struct fork_fds *f, struct pale_err *err)
{
	int channel = fcntl(f->fds[ZYGOTE_CHANNEL], F_DUPFD_CLOEXEC, FD_HIGH),
	    sock = fcntl(f->sock, F_DUPFD_CLOEXEC, FD_HIGH),
	    ruleset = fcntl(f->fds[ZYGOTE_RULESET], F_DUPFD_CLOEXEC, FD_HIGH),
	    config = fcntl(f->fds[ZYGOTE_CONFIG], F_DUPFD_CLOEXEC, FD_HIGH);

	if (channel < 0 || sock < 0 || ruleset < 0 || config < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot move a descriptor");
	for (int i = 0; i < 3; i++)
		if (dup2(f->fds[ZYGOTE_STDIO + i], i) < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "cannot set up the standard streams");
	/* Whatever had these numbers was the zygote's. */
	if (dup2(channel, FD_CHANNEL) < 0 || dup3(sock, FD_BOX, O_CLOEXEC) < 0 ||
	    dup3(ruleset, FD_BOX + 1, O_CLOEXEC) < 0 || dup3(config, FD_BOX + 2, O_CLOEXEC) < 0 ||
	    syscall(SYS_close_range, FD_BOX + 3, ~0U, 0) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot set up the descriptors");
	f->sock = FD_BOX;
	f->fds[ZYGOTE_RULESET] = FD_BOX + 1;
	f->fds[ZYGOTE_CONFIG] = FD_BOX + 2;
	return 0;
}

static const struct zygote_config *map_config(int fd, size_t *ret_bytes)
{
	off_t bytes = lseek(fd, 0, SEEK_END);
	const struct zygote_config *c;

	if (bytes < (off_t)sizeof(*c))
		return NULL;
	c = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	*ret_bytes = (size_t)bytes;
	return c == MAP_FAILED ? NULL : c;
}

/* In the box: gives up what setup.c gives up there, in the same order. */
static int become_kernel(struct fork_fds *f, char *env, size_t size, struct pale_err *err)
{
	static struct plan plan; /* as much of it as counts here */
	const struct zygote_config *c;
	struct sock_fprog filter;
	struct lockdown end = {.plan = &plan,
			       .forked = true,
			       .shared_keyring = true,
			       .arg = &f->fds[ZYGOTE_RULESET]};
	_cleanup_close_ int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	struct setup_packet hello = {.what = SETUP_FD_COMMAND, .index = (uint32_t)getpid()};
	size_t bytes = 0, env_bytes;
	int listener = -1, none = -1, r;

	if (self < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open the fork's process");
	r = fd_send(f->sock, &hello, sizeof(hello), &self, 1);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "the supervisor went away");
	if (f->order.waits && await(f->sock, err) < 0)
		return -(int)err->code;
	/* A session of its own: what it signals is not the zygote's group. */
	if (setsid() < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot start a session");
	r = place(f, err);
	self = -1; /* it went with the others */
	if (r < 0)
		return r;
	c = map_config(f->fds[ZYGOTE_CONFIG], &bytes);
	if (!c || c->env_bytes > size ||
	    sizeof(*c) + c->filter_len * sizeof(*filter.filter) + c->env_bytes != bytes)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "the fork is told what makes no sense");
	plan.user_range = c->user_range;
	plan.uid = c->uid;
	plan.gid = c->gid;
	plan.host.attach = c->attach;
	plan.side.speculation = c->speculation;
	plan.side.core_sched = c->core_sched;
	plan.rlimits = c->rlimits;
	for (size_t i = 0; i < plan.rlimits.n; i++)
		plan.rlimits.row[i].name = "a resource limit";
	filter.len = (unsigned short)c->filter_len;
	filter.filter = (struct sock_filter *)(uintptr_t)(c + 1);
	end.cwd = c->cwd;
	end.filter = &filter;
	end.listens = c->listens;
	end.control_fd = f->sock;
	end.rlimits = &plan.rlimits;
	end.restrict_files = restrict_files;
	if (!c->landlock)
		end.arg = &none;
	r = affinity_narrow(c->affinity, &c->processors, err);
	if (r == 0)
		r = lockdown(&end, &listener, err);
	if (r == 0 && tell(f->sock, SETUP_FORKED, 0) < 0)
		r = err_set(err, PALE_E_SYSTEM, STAGE, 0, "the supervisor went away");
	if (r == 0)
		r = await(f->sock, err);
	if (r < 0)
		return r;
	env_bytes = c->env_bytes;
	memcpy(env, (const char *)(filter.filter + filter.len), env_bytes);
	munmap((void *)(uintptr_t)c, bytes);
	/* The socket, the listener, and all else. */
	return syscall(SYS_close_range, FD_BOX, ~0U, 0) < 0
		       ? err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot close the descriptors")
		       : (int)env_bytes;
}

/* ---- the zygote ---- */

/* In the first process. Returns in the fork only. */
static void enter_box(struct fork_fds *f)
{
	const size_t fixed = ZYGOTE_GROUP;
	struct pale_err err;
	ssize_t n = fd_recv(f->sock, &f->order, sizeof(f->order), f->fds, ZYGOTE_FDS, &f->n);
	pid_t pid;
	int r;

	if (n != (ssize_t)sizeof(f->order) || f->n < fixed || f->n - fixed != f->order.groups)
		_exit(1);
	/* First: what the fork takes in memory is the box's. */
	r = cgroup_join(f->fds + fixed, f->order.groups);
	if (r < 0) {
		err_set(&err, PALE_E_SYSTEM, "confine", -r, "cannot join the box's cgroup");
		fail(f->sock, &err);
	}
	if (setns(f->fds[ZYGOTE_BOX], CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
					      CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0) {
		err_set(&err, PALE_E_SYSTEM, STAGE, errno,
			"the zygote's fork cannot enter the box");
		fail(f->sock, &err);
	}
	pid = fork();
	if (pid == 0)
		return;
	if (pid < 0) {
		err_set(&err, PALE_E_SYSTEM, STAGE, errno, "the zygote cannot fork");
		fail(f->sock, &err);
	}
	_exit(0);
}

/* True in the fork. */
static __attribute__((noinline)) bool fork_into(struct fork_fds *f)
{
	pid_t pid = vfork();

	if (pid == 0) {
		enter_box(f);
		return true;
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return false;
}

int pale_serve(int request_fd, char *env, size_t size)
{
	static struct fork_fds f;
	struct setup_packet ready = {.what = SETUP_FD_NONE};
	struct pale_err err;
	int r;

	/* Whoever has the same user outside may be the caller, but nobody in a box. */
	prctl(PR_SET_DUMPABLE, 0);
	r = check_threads(&ready.err);
	if (r == 0)
		r = check_memory(&ready.err);
	if (send(request_fd, &ready, sizeof(ready), MSG_NOSIGNAL) < 0 || r < 0)
		_exit(1);
	for (;;) {
		size_t n = 0;
		char byte;

		f = (struct fork_fds){.sock = -1};
		if (fd_recv(request_fd, &byte, 1, &f.sock, 1, &n) <= 0)
			_exit(0); /* nobody can ask any more */
		if (n != 1)
			continue;
		if (fork_into(&f))
			break;
		close_fd(&f.sock);
	}
	r = become_kernel(&f, env, size, &err);
	if (r < 0)
		fail(f.sock, &err);
	return r;
}
