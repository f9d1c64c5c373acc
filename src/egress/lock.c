/* How the broker locks itself in: see lock.h.
 *
 * Runs in the broker after everything that needs files or privilege, and before it sees the first
 * byte of the box. If a fault is found in one of its parsers, what is left to the finder: memory of
 * this process (the secrets of this box's policy are in it), the sockets of this box, and new TCP
 * and UDP connections from the host's network namespace. That last one is what the broker is for;
 * it cannot be narrower than "to anywhere", because whom a name resolves to is known only here.
 *
 * Order: ids (they take the capabilities along), then no_new_privs, limits, Landlock, and the
 * filter, which forbids all of that. */
#include "egress/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arch.h"
#include "base/sanitized.h"
#include "confine/landlock.h"

#define STAGE	  "egress"
/* The caches, a few thousand connections, and the state of TLS for the part that is opened. */
#define DATA_MAX  (512ull << 20)
#define FILES_MAX 32768

/* ---------------------------------------------------------------- privileges */

static int become(const struct config *c, struct pale_err *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	if (geteuid() == 0) {
		if (c->uid == 0 || c->gid == 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, 0,
				       "started by root without the id to become");
		if (setgroups(0, NULL) < 0 || setresgid(c->gid, c->gid, c->gid) < 0 ||
		    setresuid(c->uid, c->uid, c->uid) < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot become id %u",
				       c->uid);
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &header, none) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot give up capabilities");
	return 0;
}

static int limit(int resource, rlim_t most)
{
	struct rlimit r;

	if (getrlimit((__rlimit_resource_t)resource, &r) < 0)
		return -errno;
	if (r.rlim_max > most)
		r.rlim_max = most;
	r.rlim_cur = r.rlim_max;
	return setrlimit((__rlimit_resource_t)resource, &r) < 0 ? -errno : 0;
}

static int limits(struct pale_err *err)
{
	int r = limit(RLIMIT_NOFILE, FILES_MAX);

	/* 1, not 0: a handler to which the kernel pipes core dumps gets them at 0, too (core(5)).
	 */
	if (r == 0)
		r = limit(RLIMIT_CORE, 1);
	if (r == 0)
		r = limit(RLIMIT_FSIZE, 0);
	if (r == 0)
		r = limit(RLIMIT_MEMLOCK, 0);
	if (r == 0 && !SANITIZED)
		r = limit(RLIMIT_DATA, DATA_MAX);
	return r == 0 ? 0 : err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot set a resource limit");
}

static int paths(const struct config *c, struct pale_err *err)
{
	_cleanup_landlock_ struct landlock *l = NULL;
	struct landlock_host host;
	int r;

	landlock_probe(&host);
	if (host.error)
		return err_set(err, PALE_E_SYSTEM, STAGE, host.error, "cannot look for Landlock");
	if (host.abi <= 0 && c->no_landlock)
		return 0; /* the filter has no call that takes a path */
	r = landlock_new(&host, &l, err);
	if (r == 0)
		r = landlock_forbid_bind(l, err);
	return r == 0 ? landlock_restrict_self(l, err) : r;
}

int lock_privileges(const struct config *c, struct pale_err *err)
{
	pid_t parent = getppid();
	int r = become(c, err);

	if (r < 0)
		return r;
	/* After the change of ids, which undoes both. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot lock the broker in");
	if (getppid() != parent)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the supervisor is gone");
	r = limits(err);
	return r == 0 ? paths(c, err) : r;
}

/* ---------------------------------------------------------------- calls */

enum test { ANY, IS, MASKED, RANGE, NOT_RANGE };

/* One way in which a call is allowed; several rows of one call are alternatives. */
struct call {
	int nr;
	uint8_t test;
	uint8_t arg;
	uint32_t a, b; /* IS: == a; MASKED: (& a) == b; RANGE: a..b */
	uint8_t test2, arg2;
	uint32_t a2, b2; /* and */
};

#define OPTION(level, name)                                     \
	{                                                       \
		SYS_setsockopt, IS, 1, level, 0, IS, 2, name, 0 \
	}
#define SOCKET(family, type)                                       \
	{                                                          \
		SYS_socket, IS, 0, family, 0, MASKED, 1, 0xf, type \
	}

static const struct call calls[] = {
	{SYS_recvfrom},
	{SYS_sendto},
	{SYS_read},
	{SYS_write},
	{SYS_readv},
	{SYS_writev},
	{SYS_recvmsg},
	{SYS_sendmsg},
	{SYS_splice},
	{SYS_pipe2},
	{SYS_accept4},
	{SYS_connect},
	{SYS_shutdown},
	{SYS_getsockname},
	{SYS_getpeername},
	{SYS_getsockopt},
	{SYS_epoll_ctl},
	{SYS_epoll_pwait},
	{SYS_ppoll},
#ifdef SYS_epoll_wait
	{SYS_epoll_wait},
#endif
#ifdef SYS_poll
	{SYS_poll},
#endif
	{SYS_pread64}, /* new rules, from a memfd */
	{SYS_lseek},
	{SYS_munmap},
	{SYS_mremap},
	{SYS_madvise},
	{SYS_brk},
	{SYS_futex},
	{SYS_getrandom},
	{SYS_clock_gettime},
	{SYS_clock_nanosleep},
	{SYS_gettimeofday},
	{SYS_rt_sigaction},
	{SYS_rt_sigprocmask},
	{SYS_rt_sigreturn},
	{SYS_sigaltstack},
	{SYS_restart_syscall},
	{SYS_getpid},
	{SYS_gettid},
	{SYS_sched_yield},
	{SYS_exit},
	{SYS_exit_group},
	/* No code is made. */
	{SYS_mmap, MASKED, 2, PROT_EXEC, 0},
	{SYS_mprotect, MASKED, 2, PROT_EXEC, 0},
	SOCKET(AF_INET, SOCK_STREAM),
	SOCKET(AF_INET, SOCK_DGRAM),
	SOCKET(AF_INET6, SOCK_STREAM),
	SOCKET(AF_INET6, SOCK_DGRAM),
	/* Filters, timestamps, upper layer protocols and the like are code of the kernel's that
	 * nobody here needs. */
	OPTION(SOL_SOCKET, SO_LINGER),
	OPTION(SOL_SOCKET, SO_KEEPALIVE),
	OPTION(SOL_SOCKET, SO_RCVLOWAT),
	OPTION(SOL_SOCKET, SO_SNDBUF),
	OPTION(SOL_SOCKET, SO_RCVBUF),
	OPTION(IPPROTO_TCP, TCP_NODELAY),
	OPTION(IPPROTO_TCP, TCP_KEEPIDLE),
	OPTION(IPPROTO_TCP, TCP_KEEPINTVL),
	OPTION(IPPROTO_TCP, TCP_KEEPCNT),
	OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT),
	{SYS_fcntl, IS, 1, F_GETFD},
	{SYS_fcntl, IS, 1, F_SETFD},
	{SYS_fcntl, IS, 1, F_GETFL},
	{SYS_fcntl, IS, 1, F_SETFL},
	{SYS_fcntl, IS, 1, F_SETPIPE_SZ},
	{SYS_fcntl, IS, 1, F_GET_SEALS},
	{SYS_ioctl, IS, 1, FIONREAD},
	{SYS_ioctl, IS, 1, FIONBIO},
	{SYS_bind, RANGE, 0, LOCK_UDP_FIRST, LOCK_SOCKETS_LAST},
	{SYS_close, NOT_RANGE, 0, LOCK_SOCKETS_AT, LOCK_SOCKETS_LAST},
};

#define INSNS_MAX (8 + 12 * (ARRAY_SIZE(calls) + 1))

struct program {
	struct sock_filter insns[INSNS_MAX];
	unsigned short n;
};

static void emit(struct program *p, unsigned code, uint32_t k, unsigned jt, unsigned jf)
{
	p->insns[p->n++] = (struct sock_filter){(uint16_t)code, (uint8_t)jt, (uint8_t)jf, k};
}

/* Each test is four instructions long, so that jumps can be counted: left (jumped out of by `left`
 * instructions behind its end) when it fails. The kernel takes the low half only of each argument
 * that is tested here (they are ints, or bits of one). */
static void emit_test(struct program *p, unsigned test, unsigned arg, uint32_t a, uint32_t b,
		      unsigned left)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * arg),
	     0, 0);
	switch ((enum test)test) {
	case IS:
		emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
		emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, a, 0, left);
		break;
	case MASKED:
		emit(p, BPF_ALU | BPF_AND | BPF_K, a, 0, 0);
		emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, b, 0, left);
		break;
	case RANGE:
		emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
		emit(p, BPF_JMP | BPF_JGE | BPF_K, a, 0, left + 1);
		emit(p, BPF_JMP | BPF_JGT | BPF_K, b, left, 0);
		break;
	case NOT_RANGE:
		emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
		emit(p, BPF_JMP | BPF_JGE | BPF_K, a, 0, 1);
		emit(p, BPF_JMP | BPF_JGT | BPF_K, b, 0, left);
		break;
	case ANY: break;
	}
}

static void emit_call(struct program *p, const struct call *c)
{
	unsigned tests = c->test ? c->test2 ? 2 : 1 : 0;
	/* Behind the number's comparison: the tests, the return, and the number loaded anew for the
	 * next call. */
	unsigned len = 4 * tests + 1;

	emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)c->nr, 0, len + (tests ? 1 : 0));
	if (tests)
		emit_test(p, c->test, c->arg, c->a, c->b, 4 * (tests - 1) + 1);
	if (tests > 1)
		emit_test(p, c->test2, c->arg2, c->a2, c->b2, 1);
	emit(p, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	if (tests)
		emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
}

int lock_calls(struct pale_err *err)
{
	static struct program p;
	/* What abort() does, to itself only. */
	const struct call abort_call = {SYS_tgkill, IS, 0, (uint32_t)getpid()};
	struct sock_fprog program = {.filter = p.insns};

	p.n = 0;
	emit(&p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
	emit(&p, BPF_JMP | BPF_JEQ | BPF_K, ARCH_HERE, 1, 0);
	emit(&p, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	emit(&p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		emit_call(&p, &calls[i]);
	emit_call(&p, &abort_call);
	emit(&p, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0, 0);
	program.len = p.n;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot install the filter");
	return 0;
}
