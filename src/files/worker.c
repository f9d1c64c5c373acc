/* The confined child of capture and collection: see worker.h.
 *
 * Runs in a fork of the supervisor (or of the command). The tree it reads was made by the box:
 * names, contents, modes and extended attributes are hostile, and the child is assumed lost if one
 * of them finds a fault in it. So it keeps no descriptor but those it needs, drops every capability
 * but the one to read and, if it writes files, those to own them, and locks itself in with Landlock
 * (where the kernel has it) and a list of the system calls that it makes. The parent believes
 * nothing that it says: lengths are bounded, texts are escaped.
 *
 * Order: user namespace first (the capability comes with it), then the descriptors, capabilities,
 * no_new_privs, Landlock, and the filter last, which forbids all of that. */
#include "files/worker.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/arch.h"
#include "base/fd.h"
#include "base/str.h"

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* Memory, reading and writing of open descriptors, and the end. */
static const int calls_compute[] = {
	SYS_read,      SYS_write,	  SYS_readv,	    SYS_writev,		SYS_close,
	SYS_fstat,     SYS_lseek,	  SYS_mmap,	    SYS_munmap,		SYS_mremap,
	SYS_mprotect,  SYS_madvise,	  SYS_brk,	    SYS_exit,		SYS_exit_group,
	SYS_futex,     SYS_rt_sigaction,  SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_restart_syscall,
	SYS_getrandom, SYS_clock_gettime, SYS_sigaltstack,  SYS_getpid,		SYS_gettid,
	SYS_tgkill,    SYS_sched_yield,	  SYS_pread64,	    SYS_pwrite64,
};

static const int calls_read[] = {
	SYS_openat,    SYS_openat2, SYS_newfstatat, SYS_statx,	   SYS_getdents64, SYS_readlinkat,
	SYS_fgetxattr, SYS_fcntl,   SYS_ftruncate,  SYS_fadvise64, SYS_umask,
};

static const int calls_write[] = {
	SYS_mkdirat,   SYS_renameat2, SYS_unlinkat,  SYS_symlinkat, SYS_fchmod,
	SYS_utimensat, SYS_fsync,     SYS_fdatasync, SYS_fchmodat,
#ifdef SYS_renameat
	SYS_renameat, /* what the C library makes of renameat2() without flags */
#endif
};

static unsigned short add_calls(struct sock_filter *to, unsigned short at, const int *calls,
				size_t n)
{
	for (size_t i = 0; i < n; i++) {
		to[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							(uint32_t)calls[i], 0, 1);
		to[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	return at;
}

/* Whatever is not listed does not exist (ENOSYS), so that the C library falls back where it can. */
static int lock_calls(bool reads, bool writes)
{
	struct sock_filter code[6 + 2 * (ARRAY_SIZE(calls_compute) + ARRAY_SIZE(calls_read) +
					 ARRAY_SIZE(calls_write))];
	struct sock_fprog program = {.filter = code};
	unsigned short at = 0;

	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, arch));
	code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_HERE, 1, 0);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, nr));
	at = add_calls(code, at, calls_compute, ARRAY_SIZE(calls_compute));
	if (reads)
		at = add_calls(code, at, calls_read, ARRAY_SIZE(calls_read));
	if (writes)
		at = add_calls(code, at, calls_write, ARRAY_SIZE(calls_write));
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	program.len = at;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static int lock_limits(void)
{
	struct rlimit none = {0, 0}, files;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    setrlimit(RLIMIT_CORE, &none) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	/* A deep tree needs a descriptor or two a level. */
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? -errno : 0;
}

int worker_lock_compute(void)
{
	int r = lock_limits();

	return r < 0 ? r : lock_calls(false, false);
}

int worker_lock_files(void)
{
	int r = lock_limits();

	return r < 0 ? r : lock_calls(true, true);
}

static int allow_beneath(int ruleset, int dir, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = dir};

	if (dir < 0)
		return 0;
	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

/* The second lock on paths. It is absent on a kernel without Landlock, where the filter, the
 * dropped capabilities and openat2 remain. */
static int lock_paths(const struct worker *w)
{
	const uint64_t read = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
	uint64_t write = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
			 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
			 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM;
	uint64_t handled = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
	struct landlock_ruleset_attr attr;
	_cleanup_close_ int ruleset = -1;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	int r = 0;

	if (abi < 1)
		return 0;
	if (abi >= 2)
		handled |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3) {
		handled |= LANDLOCK_ACCESS_FS_TRUNCATE;
		write |= LANDLOCK_ACCESS_FS_TRUNCATE;
	}
	attr = (struct landlock_ruleset_attr){.handled_access_fs = handled};
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return -errno;
	for (size_t i = 0; r == 0 && i < WORKER_DIRS; i++)
		r = allow_beneath(ruleset, w->read_dirs[i], read);
	if (r == 0)
		r = allow_beneath(ruleset, w->write_dir, read | write);
	if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = -errno;
	return r;
}

/* Reading against the box's modes always; owning what is written only if something is. */
static int drop_capabilities(bool writes)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct have[2], want[2] = {0};
	uint32_t keep = 1u << CAP_DAC_READ_SEARCH;

	if (writes)
		keep |= 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER;
	if (syscall(SYS_capget, &head, have) < 0)
		return -errno;
	want[0].permitted = want[0].effective = have[0].permitted & keep;
	return syscall(SYS_capset, &head, want) < 0 ? -errno : 0;
}

static int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/* Closes all but stderr (the sanitizers' and the C library's last words) and what w names. */
static int close_others(const struct worker *w, int report_fd)
{
	int keep[WORKER_FDS + WORKER_DIRS + 3];
	size_t n = 0;
	unsigned from = 0;

	keep[n++] = STDERR_FILENO;
	keep[n++] = report_fd;
	keep[n++] = w->write_dir;
	for (size_t i = 0; i < WORKER_DIRS; i++)
		keep[n++] = w->read_dirs[i];
	for (size_t i = 0; i < WORKER_FDS; i++)
		keep[n++] = w->fds[i];
	qsort(keep, n, sizeof(keep[0]), compare_ints);
	for (size_t i = 0; i < n; i++) {
		if (keep[i] < 0)
			continue;
		if ((unsigned)keep[i] > from && close_range(from, (unsigned)keep[i] - 1, 0) < 0)
			return -errno;
		from = (unsigned)keep[i] + 1;
	}
	return close_range(from, ~0u, 0) < 0 ? -errno : 0;
}

/* Root reads everything as it is, and would lose the host's side of the overlay by entering. */
static bool reads_all(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct have[2] = {0};

	return syscall(SYS_capget, &head, have) == 0 &&
	       (have[0].effective & (1u << CAP_DAC_READ_SEARCH));
}

static mode_t caller_umask;

mode_t worker_umask(void)
{
	return caller_umask;
}

static int confine(const struct worker *w, int report_fd, struct pale_err *err)
{
	bool writes = w->write_dir >= 0;
	int r;

	if (w->userns_fd >= 0 && !reads_all() && setns(w->userns_fd, CLONE_NEWUSER) < 0)
		return err_set(err, PALE_E_SYSTEM, "files", errno,
			       "entering the box's user namespace");
	/* Entering the namespace cleared it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_set(err, PALE_E_SYSTEM, "files", errno,
			       "confining the process that reads changes");
	caller_umask = umask(0);
	r = close_others(w, report_fd);
	if (r == 0)
		r = lock_limits();
	if (r == 0)
		r = drop_capabilities(writes);
	if (r == 0)
		r = lock_paths(w);
	if (r == 0)
		r = lock_calls(true, writes);
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -r,
			       "confining the process that reads changes");
	return 0;
}

/* What goes through the pipe: a head, then len bytes. */
enum message_kind { MESSAGE_NOTE = 1, MESSAGE_END = 2 };
struct message {
	uint32_t kind;
	uint32_t len;
};
struct end_message {
	int32_t result;
	struct pale_err err;
	char payload[WORKER_PAYLOAD];
};
#define NOTE_MAX 65536

int worker_note(int report_fd, const char *path, const char *why)
{
	_cleanup_buf_ struct buf b = BUF_INIT(NOTE_MAX + sizeof(struct message));
	size_t path_len = strlen(path), why_len = strlen(why);
	struct message head = {.kind = MESSAGE_NOTE};

	if (path_len + why_len + 2 > NOTE_MAX)
		path_len = NOTE_MAX - why_len - 2;
	head.len = (uint32_t)(path_len + why_len + 2);
	buf_add(&b, &head, sizeof(head));
	buf_add(&b, path, path_len);
	buf_add(&b, "", 1);
	buf_add(&b, why, why_len + 1);
	if (b.failed)
		return -ENOMEM;
	return fd_write_all(report_fd, b.data, b.len);
}

_Noreturn static void child(const struct worker *w, int report_fd, pid_t parent)
{
	struct message head = {.kind = MESSAGE_END, .len = sizeof(struct end_message)};
	struct end_message end = {0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "pale-files");
	end.result = confine(w, report_fd, &end.err);
	if (end.result == 0)
		end.result = w->work(w->arg, report_fd, end.payload, &end.err);
	if (fd_write_all(report_fd, &head, sizeof(head)) < 0 ||
	    fd_write_all(report_fd, &end, sizeof(end)) < 0)
		_exit(1);
	_exit(0);
}

/* The child's messages until its end message. 0, or a negative errno if it broke off. */
static int listen_to(const struct worker *w, int fd, struct end_message *ret)
{
	_cleanup_free_ char *note = malloc(NOTE_MAX + 1);
	struct message head;

	if (!note)
		return -ENOMEM;
	for (;;) {
		ssize_t n = fd_read_full(fd, &head, sizeof(head));
		char *why;

		if (n < 0)
			return (int)n;
		if (n != (ssize_t)sizeof(head))
			return -EPIPE;
		if (head.kind == MESSAGE_END) {
			if (head.len != sizeof(*ret) ||
			    fd_read_full(fd, ret, sizeof(*ret)) != sizeof(*ret))
				return -EPIPE;
			return 0;
		}
		if (head.kind != MESSAGE_NOTE || head.len < 2 || head.len > NOTE_MAX ||
		    fd_read_full(fd, note, head.len) != (ssize_t)head.len)
			return -EPIPE;
		note[head.len] = '\0';
		why = note + strlen(note) + 1;
		if (why >= note + head.len)
			return -EPIPE;
		if (w->note)
			w->note(w->note_arg, note, why);
	}
}

int worker_run(const struct worker *w, void *ret_payload, struct pale_err *err)
{
	_cleanup_close_ int from = -1;
	struct end_message end = {0};
	pid_t parent = getpid(), pid;
	int pipe_fds[2], status = 0, r;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return err_set(err, PALE_E_SYSTEM, "files", errno, "making a pipe");
	from = pipe_fds[0];
	pid = fork();
	if (pid == 0)
		child(w, pipe_fds[1], parent);
	close(pipe_fds[1]);
	if (pid < 0)
		return err_set(err, PALE_E_SYSTEM, "files", errno,
			       "starting a process to read changes");
	r = listen_to(w, from, &end);
	if (r < 0)
		kill(pid, SIGKILL);
	/* A caller that ignores SIGCHLD, or reaps every child itself, leaves us no status: the end
	 * message says it all. */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0 && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		return err_set(err, PALE_E_SYSTEM, "files", 0,
			       "the process that reads changes was ended by signal %d",
			       WTERMSIG(status));
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, "files", -r,
			       "the process that reads changes broke off");
	if (end.result != 0) {
		char text[sizeof(end.err.message)];

		end.err.message[sizeof(end.err.message) - 1] = '\0';
		/* Escaped already by a child in its senses; a lost one must not reach a terminal.
		 */
		for (char *c = end.err.message; *c; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				*c = '?';
		snprintf(text, sizeof(text), "%s", end.err.message);
		if (end.err.code <= PALE_OK || end.err.code > PALE_E_CONFLICT)
			end.err.code = PALE_E_SYSTEM;
		return err_set(err, end.err.code, "files", 0, "%s", text);
	}
	memcpy(ret_payload, end.payload, WORKER_PAYLOAD);
	return 0;
}
