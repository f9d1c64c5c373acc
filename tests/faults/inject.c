/* Runs a command and lets system calls of it fail, as a kernel that is out of something, or an
 * older one, would. Follows all its processes with ptrace, until they become what runs in the box.
 *
 * usage: inject [-r REPORT] [-u NAME] [-p PROCESS -n N] [-m CALL[:ERRNO[:TEXT]]]... COMMAND...
 *
 * -p, -n: the Nth call of the PROCESSth process (0: the command, then by the order of their making)
 * fails, with an error that the call can have.
 *
 * -m: each call of that name fails, by default with ENOSYS. TEXT: only if its first or second
 * argument is a text that begins so ($TEXT: ends so); or, with =NUMBER or =I=NUMBER, if argument I
 * (0) is NUMBER; &NUMBER: has those bits.
 *
 * -u: from the exec of a program of this name on a process is left alone (the box's command).
 *
 * The report has a line "process K calls N" for each, "failed ..." for what was let fail, and "left
 * PID" for each process that has not ended a while after the command has. Exit status: the
 * command's. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/audit.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 512
#define MASKS	  16
#define LEFT_MS	  5000 /* for what should end with the command */

struct mask {
	int nr, error, arg;
	char op; /* what is looked at: 0, '=', '&', 't'ext or '$': its end */
	unsigned long number;
	const char *text;
};

struct process {
	pid_t pid;
	unsigned index;
	bool seen, gone, unchanged;
	bool alter; /* at the end of the call that it is in */
	int error;
	long calls;
	char name[16];
};

static struct process processes[PROCESSES];
static unsigned nprocesses;
static struct mask masks[MASKS];
static unsigned nmasks;
static long fail_process = -1, fail_call = -1;
static const char *until;
static FILE *report;

/* What each of them can really say. Without an entry: ENOMEM. 0: it cannot fail. */
static const struct {
	const char *name;
	int error;
} plausible[] = {
	{"exit", 0},
	{"exit_group", 0},
	{"rt_sigreturn", 0},
	{"getpid", 0},
	{"gettid", 0},
	{"getppid", 0},
	{"getuid", 0},
	{"geteuid", 0},
	{"getgid", 0},
	{"getegid", 0},
	{"umask", 0},
	{"set_tid_address", 0},
	{"sched_yield", 0},
	{"rt_sigprocmask", 0},
	{"rt_sigaction", 0},
	{"arch_prctl", 0},
	{"set_robust_list", 0},
	{"rseq", ENOSYS},
	{"alarm", 0},
	{"clock_gettime", 0},
	{"brk", 0}, /* says so by not moving */
	{"getpgrp", 0},
	{"restart_syscall", 0},
	{"getcwd", ENOENT},
	{"open", EMFILE},
	{"openat", EMFILE},
	{"openat2", EMFILE},
	{"dup", EMFILE},
	{"dup2", EBUSY},
	{"dup3", EBUSY},
	{"fcntl", EMFILE},
	{"pipe2", EMFILE},
	{"socket", ENFILE},
	{"socketpair", ENFILE},
	{"accept4", EMFILE},
	{"memfd_create", EMFILE},
	{"epoll_create1", EMFILE},
	{"signalfd4", EMFILE},
	{"timerfd_create", EMFILE},
	{"pidfd_open", EMFILE},
	{"pidfd_getfd", EMFILE},
	{"open_tree", EMFILE},
	{"read", EIO},
	{"pread64", EIO},
	{"readv", EIO},
	{"getdents64", EIO},
	{"write", ENOSPC},
	{"pwrite64", ENOSPC},
	{"writev", ENOSPC},
	{"ftruncate", ENOSPC},
	{"fallocate", ENOSPC},
	{"mkdir", ENOSPC},
	{"mkdirat", ENOSPC},
	{"symlink", ENOSPC},
	{"symlinkat", ENOSPC},
	{"link", ENOSPC},
	{"linkat", ENOSPC},
	{"rename", ENOSPC},
	{"renameat", ENOSPC},
	{"renameat2", ENOSPC},
	{"fsync", EIO},
	{"fdatasync", EIO},
	{"close", EIO},
	{"fork", EAGAIN},
	{"vfork", EAGAIN},
	{"clone", EAGAIN},
	{"clone3", EAGAIN},
	{"poll", EINTR},
	{"ppoll", EINTR},
	{"epoll_wait", EINTR},
	{"epoll_pwait", EINTR},
	{"wait4", EINTR},
	{"waitid", EINTR},
	{"nanosleep", EINTR},
	{"clock_nanosleep", EINTR},
	{"kill", ESRCH},
	{"pidfd_send_signal", ESRCH},
	{"sendmsg", ENOBUFS},
	{"sendto", ENOBUFS},
	{"setresuid", EAGAIN},
	{"setuid", EAGAIN},
	{"flock", EINTR},
	{"fstat", EIO},
	{"newfstatat", EIO},
	{"statx", EIO},
	{"lseek", EOVERFLOW},
	{"ioctl", EIO},
	{"unlink", EIO},
	{"unlinkat", EIO},
	{"rmdir", EIO},
	{"readlink", EIO},
	{"readlinkat", EIO},
	{"access", EIO},
	{"setsid", EPERM},
	{"prctl", EINVAL},
	{"seccomp", ENOMEM},
	{"unshare", ENOSPC},
	{"setns", ENOMEM},
	{"sched_setaffinity", EINVAL},
	{"sched_getaffinity", EINVAL},
	{"prlimit64", EPERM},
	{"getrusage", EFAULT},
	{"uname", EFAULT},
	{"futex", 0},
	{"pause", 0},
	{"sigaltstack", ENOMEM},
	{"chdir", ENOENT},
	{"fchdir", EIO},
};

static int error_of(int nr)
{
	for (size_t i = 0; i < sizeof(plausible) / sizeof(*plausible); i++)
		if (seccomp_syscall_resolve_name(plausible[i].name) == nr)
			return plausible[i].error;
	return ENOMEM;
}

static int error_by_name(const char *name)
{
	for (int e = 1; e < 134; e++)
		if (strerrorname_np(e) && strcmp(strerrorname_np(e), name) == 0)
			return e;
	fprintf(stderr, "inject: no such error: %s\n", name);
	exit(2);
}

static void add_mask(char *text)
{
	struct mask *m = &masks[nmasks++];
	char *error, *what = NULL;

	if (nmasks == MASKS)
		abort();
	error = strchr(text, ':');
	if (error)
		*error++ = '\0';
	if (error)
		what = strchr(error, ':');
	if (what)
		*what++ = '\0';
	*m = (struct mask){.nr = seccomp_syscall_resolve_name(text), .error = ENOSYS};
	if (m->nr == __NR_SCMP_ERROR) {
		fprintf(stderr, "inject: no such call: %s\n", text);
		exit(2);
	}
	if (error && *error)
		m->error = error_by_name(error);
	if (what && (*what == '=' || *what == '&')) {
		m->op = *what++;
		if (what[0] && what[1] == '=') {
			m->arg = *what - '0';
			what += 2;
		}
		m->number = strtoul(what, NULL, 0);
	} else if (what) {
		m->op = *what == '$' ? '$' : 't';
		m->text = what + (*what == '$');
	}
}

static struct process *process_of(pid_t pid)
{
	struct process *p;

	for (unsigned i = nprocesses; i-- > 0;)
		if (processes[i].pid == pid && !processes[i].gone)
			return &processes[i];
	if (nprocesses == PROCESSES)
		exit(2);
	p = &processes[nprocesses];
	*p = (struct process){.pid = pid, .index = nprocesses++};
	return p;
}

static bool has_text(pid_t pid, uint64_t at, const char *text)
{
	char have[128] = "";
	size_t len = strlen(text);
	struct iovec to = {have, len}, from = {(void *)(uintptr_t)at, len};

	return len < sizeof(have) && process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)len &&
	       memcmp(have, text, len) == 0;
}

static bool ends_with(pid_t pid, uint64_t at, const char *text)
{
	char have[4096];
	/* What follows a text on its page is there, what follows the page may not be. */
	size_t room = 4096 - at % 4096;
	struct iovec to = {have, room}, from = {(void *)(uintptr_t)at, room};
	ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);
	size_t len = n > 0 ? strnlen(have, (size_t)n) : 0;

	return len >= strlen(text) && memcmp(have + len - strlen(text), text, strlen(text)) == 0;
}

static bool masked(const struct mask *m, pid_t pid, const struct __ptrace_syscall_info *info)
{
	const uint64_t *args = info->entry.args;

	if (m->nr < 0 || (uint64_t)m->nr != info->entry.nr)
		return false;
	if (m->op == '=')
		return args[m->arg] == m->number;
	if (m->op == '&')
		return (args[m->arg] & m->number) != 0;
	if (m->op == '$')
		return ends_with(pid, args[0], m->text) || ends_with(pid, args[1], m->text);
	return m->op != 't' || has_text(pid, args[0], m->text) || has_text(pid, args[1], m->text) ||
	       has_text(pid, args[2], m->text);
}

/* Makes it one that does nothing: none at all would be reported by the box's filter. The number and
 * the result are where each architecture has them. */
static void skip_call(pid_t pid)
{
#if defined(__x86_64__)
	ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), (long)SYS_getpid);
#elif defined(__aarch64__)
	int none = SYS_getpid;
	struct iovec v = {&none, sizeof(none)};

	ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &v);
#endif
}

static void set_result(pid_t pid, int error)
{
#if defined(__x86_64__)
	ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), (long)-error);
#elif defined(__aarch64__)
	struct user_regs_struct regs;
	struct iovec v = {&regs, sizeof(regs)};

	ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &v);
	regs.regs[0] = (uint64_t)(int64_t)-error;
	ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &v);
#endif
}

static void tell_failed(const struct process *p, uint64_t nr, int error)
{
	char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)nr);

	if (report)
		fprintf(report, "failed process %u call %ld: %s: %s\n", p->index, p->calls,
			name ? name : "?", strerrorname_np(error));
	free(name);
}

static void at_call(struct process *p)
{
	struct __ptrace_syscall_info info = {0};

	if (ptrace(PTRACE_GET_SYSCALL_INFO, p->pid, sizeof(info), &info) < 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_EXIT && p->alter) {
		set_result(p->pid, p->error);
		p->alter = false;
	}
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return;
	p->error = 0;
	p->calls++;
	for (unsigned i = 0; i < nmasks && !p->error; i++)
		if (masked(&masks[i], p->pid, &info))
			p->error = masks[i].error;
	if ((long)p->index == fail_process && p->calls == fail_call) {
		p->error = error_of((int)info.entry.nr);
	}
	if (!p->error)
		return;
	tell_failed(p, info.entry.nr, p->error);
	/* What close() says of its failure comes after it has closed. */
	if (info.entry.nr != SYS_close)
		skip_call(p->pid);
	p->alter = true;
}

/* Whether it is let go, for good. */
static bool at_exec(struct process *p)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", p->pid);
	f = fopen(path, "re");
	if (f && !fgets(p->name, sizeof(p->name), f))
		p->name[0] = '\0';
	if (f)
		fclose(f);
	p->name[strcspn(p->name, "\n")] = '\0';
	if (!until || strcmp(p->name, until) != 0)
		return false;
	p->gone = true;
	ptrace(PTRACE_DETACH, p->pid, 0, 0);
	return true;
}

static void at_stop(struct process *p, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);

	if (sig == (SIGTRAP | 0x80)) {
		at_call(p);
		sig = 0;
	} else if (event == PTRACE_EVENT_EXEC) {
		if (at_exec(p))
			return;
		sig = 0;
	} else if (event == PTRACE_EVENT_STOP && p->seen && sig != SIGTRAP) {
		ptrace(PTRACE_LISTEN, p->pid, 0, 0);
		return;
	} else if (event) {
		sig = 0;
	}
	p->seen = true;
	ptrace(PTRACE_SYSCALL, p->pid, 0, sig);
}

static pid_t start(char **argv)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	int gate[2];
	pid_t pid;
	char c;

	if (pipe2(gate, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		exit(2);
	if (pid == 0) {
		close(gate[1]);
		if (read(gate[0], &c, 1) != 0)
			_exit(127);
		execvp(argv[0], argv);
		_exit(127);
	}
	process_of(pid);
	if (ptrace(PTRACE_SEIZE, pid, 0, options) < 0) {
		perror("inject: ptrace");
		exit(2);
	}
	close(gate[0]);
	close(gate[1]);
	return pid;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void tell_all(void)
{
	for (unsigned i = 0; report && i < nprocesses; i++)
		fprintf(report, "process %u calls %ld %s\n", processes[i].index, processes[i].calls,
			processes[i].name);
}

int main(int argc, char **argv)
{
	int c, status, result = 2;
	long until_ms = 0;
	pid_t first, pid;

	while ((c = getopt(argc, argv, "+r:u:p:n:m:")) != -1) {
		if (c == 'r')
			report = fopen(optarg, "we");
		else if (c == 'u')
			until = optarg;
		else if (c == 'p')
			fail_process = strtol(optarg, NULL, 10);
		else if (c == 'n')
			fail_call = strtol(optarg, NULL, 10);
		else if (c == 'm')
			add_mask(optarg);
		else
			return 2;
	}
	if (optind == argc)
		return 2;
	/* A caller who waits no longer ends us, and still reads it. */
	if (report)
		setvbuf(report, NULL, _IOLBF, 0);
	/* What the command leaves behind comes to us. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	first = start(argv + optind);
	for (;;) {
		pid = waitpid(-1, &status, __WALL | (until_ms ? WNOHANG : 0));
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			break;
		if (pid == 0) {
			if (now_ms() > until_ms)
				break;
			poll(NULL, 0, 1);
			continue;
		}
		struct process *p = process_of(pid);

		if (WIFSTOPPED(status)) {
			at_stop(p, status);
			continue;
		}
		p->gone = true;
		if (pid == first) {
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			until_ms = now_ms() + LEFT_MS;
		}
	}
	for (unsigned i = 0; i < nprocesses; i++)
		if (!processes[i].gone && kill(processes[i].pid, 0) == 0 && report)
			fprintf(report, "left %d %s\n", processes[i].pid, processes[i].name);
	tell_all();
	if (report)
		fclose(report);
	return result;
}
