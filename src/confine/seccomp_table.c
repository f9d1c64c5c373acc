/* The system calls, one row each.
 *
 * Compiled twice: into the build-time generator, which turns the rows into BPF, and into Pale,
 * where the supervisor looks up what to answer to a refused call. The arguments are hostile; they
 * are only ever compared.
 *
 * How the errnos were chosen: what a program reads as "this kernel does not have it" (ENOSYS) where
 * it then takes another way (clone3, io_uring, keyctl), and what the kernel's own switch gives
 * where there is one (userfaultfd, bpf: EPERM; perf_event_open: EACCES).
 *
 * Profiles. default: what ordinary programs need. nested: the same, with user namespaces and what
 * they make possible. strict: compute only: cpu, memory, files, threads, pipes, children. New
 * processes stay possible in strict, because a fork opens no more of the kernel than the clone that
 * a thread needs; `limits.processes` bounds them. What goes is the socket layer but for socketpair,
 * System V and POSIX IPC, AIO, splicing, file notification, attributes, ptrace and most ioctls. */
#include "confine/seccomp_table.h"

#include <errno.h>

#define DEF SECCOMP_P_DEFAULT
#define STR SECCOMP_P_STRICT
#define NST SECCOMP_P_NESTED
#define ALL (DEF | STR | NST)

/* Headers older than the values, and values that differ between C libraries. */
#define FULL		 0xffffffffu
#define CLONE_NAMESPACES 0x7e020000u /* CLONE_NEWNS | CGROUP | UTS | IPC | USER | PID | NET */
#define CLONE_NEWTIME_	 0x80u	     /* clone(2) has its exit signal there: only for unshare */
#define FAMILY_UNIX	 1u
#define FAMILY_NETLINK	 16u
#define FAMILY_INET_MASK 0xfffffff7u /* AF_INET (2) and AF_INET6 (10) differ in this bit only */
#define FAMILY_INET_ANY	 2u
#define TYPE_MASK	 0xfu		       /* without SOCK_CLOEXEC and SOCK_NONBLOCK */
#define OPEN_CHANGES	 (3u | 0100u | 01000u) /* O_WRONLY, O_RDWR, O_CREAT, O_TRUNC */
#define FORMAT_MASK	 0170000u

#define WRITES (SECCOMP_WATCH_FILE_WRITES | SECCOMP_WATCH_FILES)
#define OPENS  SECCOMP_WATCH_FILES
#define OUTPUT SECCOMP_WATCH_OUTPUT

#define EQ(a, v)                       \
	{                              \
		a, SECCOMP_EQ, FULL, v \
	}
#define EQM(a, m, v)                \
	{                           \
		a, SECCOMP_EQ, m, v \
	}
#define NEM(a, m, v)                \
	{                           \
		a, SECCOMP_NE, m, v \
	}
#define SET(a)                           \
	{                                \
		a, SECCOMP_POINTER, 0, 0 \
	}
#define NO(profiles, err, n, ...)                    \
	{                                            \
		profiles, 0, SECCOMP_REFUSE, n, err, \
		{                                    \
			__VA_ARGS__                  \
		}                                    \
	}
#define HUSH(profiles, err, n, ...)                  \
	{                                            \
		profiles, 0, SECCOMP_SILENT, n, err, \
		{                                    \
			__VA_ARGS__                  \
		}                                    \
	}
#define OK(profiles, n, ...)                      \
	{                                         \
		profiles, 0, SECCOMP_ALLOW, n, 0, \
		{                                 \
			__VA_ARGS__               \
		}                                 \
	}
#define TELL(profiles, w, n, ...)                  \
	{                                          \
		profiles, w, SECCOMP_REPORT, n, 0, \
		{                                  \
			__VA_ARGS__                \
		}                                  \
	}
#define END       \
	{         \
		0 \
	}

/* Descriptors 1 and 2 by whichever argument names where the bytes go. */
#define OUTPUT_AT(arg, profiles)                                                                  \
	{                                                                                         \
		TELL(profiles, OUTPUT, 1, EQ(arg, 1)), TELL(profiles, OUTPUT, 1, EQ(arg, 2)), END \
	}
static const struct seccomp_case c_output0[] = OUTPUT_AT(0, ALL);
static const struct seccomp_case c_vmsplice[] = OUTPUT_AT(0, DEF | NST);
static const struct seccomp_case c_output1[] = OUTPUT_AT(1, DEF | NST);
static const struct seccomp_case c_output2[] = OUTPUT_AT(2, DEF | NST);

static const struct seccomp_case c_name[] = {TELL(ALL, WRITES, 0), END};
static const struct seccomp_case c_attribute[] = {TELL(DEF | NST, WRITES, 0), END};
static const struct seccomp_case c_open[] = {TELL(ALL, OPENS, 0),
					     TELL(ALL, WRITES, 1, NEM(1, OPEN_CHANGES, 0)), END};
static const struct seccomp_case c_openat[] = {TELL(ALL, OPENS, 0),
					       TELL(ALL, WRITES, 1, NEM(2, OPEN_CHANGES, 0)), END};
static const struct seccomp_case c_exec[] = {TELL(ALL, OPENS, 0), END};
/* Not with AT_EMPTY_PATH: there is no path to look at. (And so the box's first process is started
 * before anybody listens.) */
static const struct seccomp_case c_execat[] = {TELL(ALL, OPENS, 1, EQM(4, 0x1000, 0)), END};

/* Huge pages come from a pool that the host's administrator made for somebody, and no control group
 * for memory counts them. The errno is that of an empty pool. (Transparent ones are counted.) */
static const struct seccomp_case c_huge_map[] = {NO(ALL, ENOMEM, 1, NEM(3, 0x40000, 0)), END};
static const struct seccomp_case c_huge_file[] = {NO(ALL, ENOMEM, 1, NEM(1, 4, 0)), END};
static const struct seccomp_case c_huge_segment[] = {NO(DEF | NST, ENOMEM, 1, NEM(2, 04000, 0)),
						     END};

/* A device node is refused by the kernel too; said here, no overlay or tmpfs has to be right. */
static const struct seccomp_case c_mknod[] = {NO(ALL, EPERM, 1, EQM(1, FORMAT_MASK, 0020000)),
					      NO(ALL, EPERM, 1, EQM(1, FORMAT_MASK, 0060000)),
					      TELL(ALL, WRITES, 0), END};
static const struct seccomp_case c_mknodat[] = {NO(ALL, EPERM, 1, EQM(2, FORMAT_MASK, 0020000)),
						NO(ALL, EPERM, 1, EQM(2, FORMAT_MASK, 0060000)),
						TELL(ALL, WRITES, 0), END};

/* /etc/passwd has root and nobody, as everywhere; where the box's user namespace has neither's id,
 * the kernel takes a program that asks for one to be mistaken (EINVAL). What an ordinary machine
 * says to an ordinary user, and what programs are prepared for, is that it may not. */
#define NOBODY 65534u
#define STRANGER(n, ...)                                               \
	{                                                              \
		DEF | STR, SECCOMP_ONE_USER, SECCOMP_SILENT, n, EPERM, \
		{                                                      \
			__VA_ARGS__                                    \
		}                                                      \
	}
#define STRANGERS(arg) STRANGER(1, EQ(arg, 0)), STRANGER(1, EQ(arg, NOBODY))
static const struct seccomp_case c_chown[] = {STRANGERS(1), STRANGERS(2), TELL(ALL, WRITES, 0),
					      END};
static const struct seccomp_case c_fchownat[] = {STRANGERS(2), STRANGERS(3), TELL(ALL, WRITES, 0),
						 END};
static const struct seccomp_case c_fchown[] = {STRANGERS(1), STRANGERS(2), END};
static const struct seccomp_case c_setid[] = {STRANGERS(0), END};
static const struct seccomp_case c_setids[] = {STRANGERS(0), STRANGERS(1), END};

static const struct seccomp_case c_clone[] = {NO(DEF | STR, EPERM, 1, NEM(0, CLONE_NAMESPACES, 0)),
					      END};
static const struct seccomp_case c_unshare[] = {
	NO(DEF | STR, EPERM, 1, NEM(0, CLONE_NAMESPACES | CLONE_NEWTIME_, 0)), END};

/* Tracing one's own children (PTRACE_TRACEME and all that follows: gdb, and strace in its older
 * way) stays; attaching to a process that did not ask for it does not. */
static const struct seccomp_case c_ptrace[] = {NO(DEF | NST, EPERM, 1, EQ(0, 16)),     /* ATTACH */
					       NO(DEF | NST, EPERM, 1, EQ(0, 0x4206)), /* SEIZE */
					       END};

static const struct seccomp_case c_personality[] = {
	OK(ALL, 1, EQ(0, 0)),
	OK(ALL, 1, EQ(0, FULL)),	 /* set the default; ask */
	OK(DEF | NST, 1, EQ(0, 0x0008)), /* PER_LINUX32: setarch, only uname changes */
	OK(DEF | NST, 1, EQ(0, 0x40000)),
	OK(DEF | NST, 1, EQ(0, 0x40008)), /* no randomisation: gdb */
	END};

/* The limit of core dumps stays at what rlimits.c says, which alone keeps the host's handler of
 * core dumps, run by its root, from being fed by the box; to be told so would stop programs that
 * only want none. The box's first process has the same user as the rest: without descriptors or
 * memory it could not do its work. */
static const struct seccomp_case c_setrlimit[] = {HUSH(ALL, 0, 1, EQ(0, 4)), END};
static const struct seccomp_case c_prlimit[] = {NO(ALL, EPERM, 1, EQ(0, 1)),
						HUSH(ALL, 0, 2, EQ(1, 4), SET(2)), END};

/* Nor without processor time: the box's end is its work, also when it is killed. All processes of
 * the user at once are it, too. */
static const struct seccomp_case c_first[] = {NO(ALL, EPERM, 1, EQ(0, 1)), END};
static const struct seccomp_case c_setpriority[] = {NO(ALL, EPERM, 2, EQ(0, 0), EQ(1, 1)),
						    NO(ALL, EPERM, 2, EQ(0, 1), EQ(1, 1)),
						    NO(ALL, EPERM, 1, EQ(0, 2)), END};
static const struct seccomp_case c_ioprio[] = {NO(ALL, EPERM, 2, EQ(0, 1), EQ(1, 1)),
					       NO(ALL, EPERM, 2, EQ(0, 2), EQ(1, 1)),
					       NO(ALL, EPERM, 1, EQ(0, 3)), END};

static const struct seccomp_case c_prctl[] = {
	NO(ALL, EPERM, 1, EQ(0, 35)),  /* PR_SET_MM: another program's name, memory layout */
	NO(ALL, EINVAL, 1, EQ(0, 57)), /* PR_SET_IO_FLUSHER: past the dirty page limits */
	NO(ALL, EINVAL, 1, EQ(0, 59)), /* PR_SET_SYSCALL_USER_DISPATCH */
	NO(ALL, EINVAL, 1, EQ(0, 62)), /* PR_SCHED_CORE */
	END};

/* What injects input into a terminal, or loads line disciplines and console state. */
#define TERMINAL(p)                                             \
	NO(p, EPERM, 1, EQ(1, 0x5412)),		/* TIOCSTI */   \
		NO(p, EPERM, 1, EQ(1, 0x541c)), /* TIOCLINUX */ \
		NO(p, EPERM, 1, EQ(1, 0x541d)), /* TIOCCONS */  \
		NO(p, EPERM, 1, EQ(1, 0x5423)), /* TIOCSETD */  \
		NO(p, EPERM, 1, EQ(1, 0x5437))	/* TIOCVHANGUP */
static const struct seccomp_case c_ioctl[] = {
	TERMINAL(DEF | NST),	       OK(STR, 1, EQ(1, 0x5401)), /* TCGETS */
	OK(STR, 1, EQ(1, 0x5402)),				  /* TCSETS, TCSETSW, TCSETSF */
	OK(STR, 1, EQ(1, 0x5403)),     OK(STR, 1, EQ(1, 0x5404)),
	OK(STR, 1, EQ(1, 0x802c542a)), /* TCGETS2 */
	OK(STR, 1, EQ(1, 0x5409)),     /* TCSBRK: tcdrain() */
	OK(STR, 1, EQ(1, 0x540e)), /* TIOCSCTTY: the box's first process takes its own terminal */
	OK(STR, 1, EQ(1, 0x540f)), /* TIOCGPGRP, TIOCSPGRP */
	OK(STR, 1, EQ(1, 0x5410)),     OK(STR, 1, EQ(1, 0x5413)), /* TIOCGWINSZ */
	OK(STR, 1, EQ(1, 0x541b)),				  /* FIONREAD */
	OK(STR, 1, EQ(1, 0x5421)),				  /* FIONBIO */
	OK(STR, 1, EQ(1, 0x5450)),				  /* FIONCLEX, FIOCLEX */
	OK(STR, 1, EQ(1, 0x5451)),     END};

/* TCP and UDP over IPv4 and IPv6, Unix sockets, and routing netlink for getifaddrs(). MPTCP, which
 * Go tries by itself, is silent. Raw sockets fail as they do without a capability. */
static const struct seccomp_case c_socket[] = {
	HUSH(STR, EACCES, 1, EQ(0, FAMILY_UNIX)), /* the C library looks for nscd with it */
	NO(STR, EACCES, 0),
	OK(ALL, 1, EQ(0, FAMILY_UNIX)),
	OK(ALL, 3, EQM(0, FAMILY_INET_MASK, FAMILY_INET_ANY), EQM(1, TYPE_MASK, 1), EQ(2, 0)),
	OK(ALL, 3, EQM(0, FAMILY_INET_MASK, FAMILY_INET_ANY), EQM(1, TYPE_MASK, 1), EQ(2, 6)),
	OK(ALL, 3, EQM(0, FAMILY_INET_MASK, FAMILY_INET_ANY), EQM(1, TYPE_MASK, 2), EQ(2, 0)),
	OK(ALL, 3, EQM(0, FAMILY_INET_MASK, FAMILY_INET_ANY), EQM(1, TYPE_MASK, 2), EQ(2, 17)),
	HUSH(ALL, EPROTONOSUPPORT, 2, EQM(0, FAMILY_INET_MASK, FAMILY_INET_ANY), EQ(2, 262)),
	NO(ALL, EPERM, 2, EQM(0, FAMILY_INET_MASK, FAMILY_INET_ANY), EQM(1, TYPE_MASK, 3)),
	NO(ALL, EPROTONOSUPPORT, 1, EQM(0, FAMILY_INET_MASK, FAMILY_INET_ANY)),
	OK(ALL, 2, EQ(0, FAMILY_NETLINK), EQ(2, 0)),
	NO(ALL, EPROTONOSUPPORT, 1, EQ(0, FAMILY_NETLINK)),
	END};
static const struct seccomp_case c_socketpair[] = {OK(ALL, 1, EQ(0, FAMILY_UNIX)), END};

/* In strict no socket can have an address. */
static const struct seccomp_case c_sysinfo[] = {TELL(ALL, 0, 0), END};
static const struct seccomp_case c_connect[] = {TELL(DEF | NST, 0, 0), END};
static const struct seccomp_case c_sendto[] = {TELL(DEF | NST, 0, 1, SET(4)), END};

enum seccomp_cases {
	C_NONE,
	C_OUTPUT0,
	C_VMSPLICE,
	C_OUTPUT1,
	C_OUTPUT2,
	C_NAME,
	C_ATTRIBUTE,
	C_OPEN,
	C_OPENAT,
	C_EXEC,
	C_EXECAT,
	C_HUGE_MAP,
	C_HUGE_FILE,
	C_HUGE_SEGMENT,
	C_MKNOD,
	C_MKNODAT,
	C_CHOWN,
	C_FCHOWNAT,
	C_FCHOWN,
	C_SETID,
	C_SETIDS,
	C_CLONE,
	C_UNSHARE,
	C_PTRACE,
	C_PERSONALITY,
	C_PRCTL,
	C_PRLIMIT,
	C_SETRLIMIT,
	C_FIRST,
	C_SETPRIORITY,
	C_IOPRIO,
	C_IOCTL,
	C_SOCKET,
	C_SOCKETPAIR,
	C_SYSINFO,
	C_CONNECT,
	C_SENDTO,
};

const struct seccomp_case *seccomp_row_cases(const struct seccomp_row *row)
{
	static const struct seccomp_case none[] = {END};

	switch ((enum seccomp_cases)row->cases) {
	case C_NONE: return none;
	case C_OUTPUT0: return c_output0;
	case C_VMSPLICE: return c_vmsplice;
	case C_OUTPUT1: return c_output1;
	case C_OUTPUT2: return c_output2;
	case C_NAME: return c_name;
	case C_ATTRIBUTE: return c_attribute;
	case C_OPEN: return c_open;
	case C_OPENAT: return c_openat;
	case C_EXEC: return c_exec;
	case C_EXECAT: return c_execat;
	case C_HUGE_MAP: return c_huge_map;
	case C_HUGE_FILE: return c_huge_file;
	case C_HUGE_SEGMENT: return c_huge_segment;
	case C_MKNOD: return c_mknod;
	case C_MKNODAT: return c_mknodat;
	case C_CHOWN: return c_chown;
	case C_FCHOWNAT: return c_fchownat;
	case C_FCHOWN: return c_fchown;
	case C_SETID: return c_setid;
	case C_SETIDS: return c_setids;
	case C_CLONE: return c_clone;
	case C_UNSHARE: return c_unshare;
	case C_PTRACE: return c_ptrace;
	case C_PERSONALITY: return c_personality;
	case C_PRCTL: return c_prctl;
	case C_PRLIMIT: return c_prlimit;
	case C_SETRLIMIT: return c_setrlimit;
	case C_FIRST: return c_first;
	case C_SETPRIORITY: return c_setpriority;
	case C_IOPRIO: return c_ioprio;
	case C_IOCTL: return c_ioctl;
	case C_SOCKET: return c_socket;
	case C_SOCKETPAIR: return c_socketpair;
	case C_SYSINFO: return c_sysinfo;
	case C_CONNECT: return c_connect;
	case C_SENDTO: return c_sendto;
	}
	return none;
}

#define YES SECCOMP_ALLOW
#define NAY SECCOMP_REFUSE
#define SIL SECCOMP_SILENT
#define PEK SECCOMP_PEEK
/* Everywhere; everywhere, with cases; not in strict; in nested only; nowhere; nowhere and silent.
 */
#define A(name)                                  \
	{                                        \
		name, {YES, YES, YES}, C_NONE, 0 \
	}
#define AC(name, c)                         \
	{                                   \
		name, {YES, YES, YES}, c, 0 \
	}
#define D(name)                                      \
	{                                            \
		name, {YES, NAY, YES}, C_NONE, EPERM \
	}
#define DC(name, c)                             \
	{                                       \
		name, {YES, NAY, YES}, c, EPERM \
	}
/* In strict as on a file system that has no attributes: cp -a goes on. */
#define X(name, c)                                   \
	{                                            \
		name, {YES, SIL, YES}, c, EOPNOTSUPP \
	}
#define N(name)                                      \
	{                                            \
		name, {NAY, NAY, YES}, C_NONE, EPERM \
	}
#define R(name, err)                               \
	{                                          \
		name, {NAY, NAY, NAY}, C_NONE, err \
	}
#define RC(name, err, c)                      \
	{                                     \
		name, {NAY, NAY, NAY}, c, err \
	}
#define S(name, err)                               \
	{                                          \
		name, {SIL, SIL, SIL}, C_NONE, err \
	}

const struct seccomp_row seccomp_rows[] = {
	/* clang-format off */
	/* reading, writing, descriptors */
	A("read"), A("readv"), A("pread64"), A("preadv"), A("preadv2"), A("pwrite64"), A("pwritev"),
	AC("write", C_OUTPUT0), AC("writev", C_OUTPUT0), AC("pwritev2", C_OUTPUT0),
	AC("sendfile", C_OUTPUT0), A("copy_file_range"),
	DC("splice", C_OUTPUT2), DC("tee", C_OUTPUT1), DC("vmsplice", C_VMSPLICE),
	A("close"), A("close_range"), A("dup"), A("dup2"), A("dup3"), A("fcntl"), A("flock"), A("lseek"),
	A("pipe"), A("pipe2"), A("poll"), A("ppoll"), A("select"), A("pselect6"), A("fadvise64"),
	A("readahead"), A("fsync"), A("fdatasync"), A("sync"), A("syncfs"), A("sync_file_range"),
	A("ftruncate"), A("fallocate"), {"ioctl", {YES, NAY, YES}, C_IOCTL, ENOTTY}, A("cachestat"),
	A("epoll_create"), A("epoll_create1"), A("epoll_ctl"), A("epoll_wait"), A("epoll_pwait"),
	A("epoll_pwait2"), A("eventfd"), A("eventfd2"), A("signalfd"), A("signalfd4"),
	A("timerfd_create"), A("timerfd_settime"), A("timerfd_gettime"), AC("memfd_create", C_HUGE_FILE),
	D("inotify_init"), D("inotify_init1"), D("inotify_add_watch"), D("inotify_rm_watch"),

	/* files by name */
	AC("open", C_OPEN), AC("openat", C_OPENAT), AC("openat2", C_NAME), AC("creat", C_NAME),
	AC("mkdir", C_NAME), AC("mkdirat", C_NAME), AC("rmdir", C_NAME),
	AC("unlink", C_NAME), AC("unlinkat", C_NAME),
	AC("rename", C_NAME), AC("renameat", C_NAME), AC("renameat2", C_NAME),
	AC("link", C_NAME), AC("linkat", C_NAME), AC("symlink", C_NAME), AC("symlinkat", C_NAME),
	AC("mknod", C_MKNOD), AC("mknodat", C_MKNODAT), AC("truncate", C_NAME),
	AC("chmod", C_NAME), AC("fchmodat", C_NAME), AC("fchmodat2", C_NAME), A("fchmod"),
	AC("chown", C_CHOWN), AC("lchown", C_CHOWN), AC("fchownat", C_FCHOWNAT), AC("fchown", C_FCHOWN),
	AC("utime", C_NAME), AC("utimes", C_NAME), AC("futimesat", C_NAME), AC("utimensat", C_NAME),
	A("access"), A("faccessat"), A("faccessat2"), A("stat"), A("lstat"), A("fstat"),
	A("newfstatat"), A("statx"), A("statfs"), A("fstatfs"), A("readlink"), A("readlinkat"),
	A("getdents"), A("getdents64"), A("getcwd"), A("chdir"), A("fchdir"), A("umask"),
	A("getxattr"), A("lgetxattr"), A("fgetxattr"), A("getxattrat"),
	A("listxattr"), A("llistxattr"), A("flistxattr"), A("listxattrat"),
	X("setxattr", C_ATTRIBUTE), X("lsetxattr", C_ATTRIBUTE), X("fsetxattr", C_NONE), X("setxattrat", C_ATTRIBUTE),
	X("removexattr", C_ATTRIBUTE), X("lremovexattr", C_ATTRIBUTE), X("fremovexattr", C_NONE),
	X("removexattrat", C_ATTRIBUTE), D("name_to_handle_at"),

	/* memory */
	AC("mmap", C_HUGE_MAP), A("mprotect"), A("munmap"), A("mremap"), A("brk"), A("msync"), A("mincore"),
	A("madvise"), A("mlock"), A("mlock2"), A("munlock"), A("mlockall"), A("munlockall"),
	A("mbind"), A("set_mempolicy"), A("get_mempolicy"), A("membarrier"), A("mseal"),
	A("pkey_mprotect"), A("pkey_alloc"), A("pkey_free"), A("map_shadow_stack"),
	D("remap_file_pages"),

	/* processes and threads */
	AC("clone", C_CLONE), {"clone3", {PEK, PEK, YES}, C_NONE, ENOSYS}, A("fork"), A("vfork"),
	AC("execve", C_EXEC), AC("execveat", C_EXECAT), A("exit"), A("exit_group"), A("wait4"),
	A("waitid"), A("kill"), A("tkill"), A("tgkill"), A("pidfd_open"), A("pidfd_send_signal"),
	A("getpid"), A("getppid"), A("gettid"), A("getpgrp"), A("getpgid"), A("setpgid"), A("getsid"),
	A("setsid"), A("getuid"), A("geteuid"), A("getgid"), A("getegid"), A("getresuid"),
	A("getresgid"), A("getgroups"), AC("setuid", C_SETID), AC("setgid", C_SETID), AC("setreuid", C_SETIDS), AC("setregid", C_SETIDS),
	AC("setresuid", C_SETIDS), AC("setresgid", C_SETIDS), A("setfsuid"), A("setfsgid"), A("setgroups"), A("capget"),
	A("capset"), AC("prctl", C_PRCTL), A("arch_prctl"), A("set_thread_area"), A("get_thread_area"),
	A("set_tid_address"), A("set_robust_list"), A("get_robust_list"), A("rseq"), A("futex"),
	A("futex_waitv"), A("futex_wake"), A("futex_wait"), A("futex_requeue"), A("getcpu"),
	A("sched_yield"), AC("sched_setparam", C_FIRST), A("sched_getparam"), AC("sched_setscheduler", C_FIRST),
	A("sched_getscheduler"), A("sched_get_priority_max"), A("sched_get_priority_min"),
	A("sched_rr_get_interval"), AC("sched_setaffinity", C_FIRST), A("sched_getaffinity"),
	AC("sched_setattr", C_FIRST), A("sched_getattr"), A("getpriority"), AC("setpriority", C_SETPRIORITY), A("ioprio_get"),
	AC("ioprio_set", C_IOPRIO), A("getrlimit"), AC("setrlimit", C_SETRLIMIT), AC("prlimit64", C_PRLIMIT),
	A("getrusage"), A("times"),
	A("uname"), AC("sysinfo", C_SYSINFO), A("restart_syscall"), A("uretprobe"), A("seccomp"),
	A("landlock_create_ruleset"), A("landlock_add_rule"), A("landlock_restrict_self"),
	RC("personality", EPERM, C_PERSONALITY), DC("ptrace", C_PTRACE),
	AC("unshare", C_UNSHARE),

	/* signals and time */
	A("rt_sigaction"), A("rt_sigprocmask"), A("rt_sigreturn"), A("rt_sigpending"),
	A("rt_sigtimedwait"), A("rt_sigqueueinfo"), A("rt_tgsigqueueinfo"), A("rt_sigsuspend"),
	A("sigaltstack"), A("pause"), A("alarm"), A("getitimer"), A("setitimer"), A("nanosleep"),
	A("clock_nanosleep"), A("clock_gettime"), A("clock_getres"), A("gettimeofday"), A("time"),
	A("timer_create"), A("timer_settime"), A("timer_gettime"), A("timer_getoverrun"),
	A("timer_delete"), A("getrandom"),

	/* sockets */
	RC("socket", EAFNOSUPPORT, C_SOCKET), RC("socketpair", EAFNOSUPPORT, C_SOCKETPAIR),
	DC("connect", C_CONNECT), AC("sendto", C_SENDTO), AC("sendmsg", C_CONNECT),
	AC("sendmmsg", C_CONNECT), A("recvfrom"), A("recvmsg"), A("recvmmsg"), A("shutdown"),
	A("getsockname"), A("getpeername"), A("getsockopt"), D("setsockopt"), D("bind"), D("listen"),
	D("accept"), D("accept4"),

	/* System V and POSIX IPC: the box has its own IPC namespace */
	DC("shmget", C_HUGE_SEGMENT), D("shmat"), D("shmctl"), D("shmdt"), D("semget"), D("semop"), D("semctl"),
	D("semtimedop"), D("msgget"), D("msgsnd"), D("msgrcv"), D("msgctl"), D("mq_open"),
	D("mq_unlink"), D("mq_timedsend"), D("mq_timedreceive"), D("mq_notify"), D("mq_getsetattr"),

	/* only where boxes are made inside the box */
	N("mount"), N("umount2"), N("pivot_root"), N("chroot"), N("setns"), N("sethostname"),
	N("setdomainname"), N("open_tree"), N("move_mount"), N("fsopen"), N("fsconfig"), N("fsmount"),
	N("fspick"), N("mount_setattr"), N("open_tree_attr"), {"statmount", {SIL, SIL, YES}, C_NONE, ENOSYS},
	{"listmount", {SIL, SIL, YES}, C_NONE, ENOSYS}, {"listns", {SIL, SIL, YES}, C_NONE, ENOSYS},

	/* other processes' memory and descriptors */
	R("process_vm_readv", EPERM), R("process_vm_writev", EPERM), R("process_madvise", EPERM),
	R("process_mrelease", EPERM), R("pidfd_getfd", EPERM), R("kcmp", EPERM), R("move_pages", EPERM),
	R("migrate_pages", EPERM),

	/* parts of the kernel with a long record of holes, which programs can do without */
	R("io_uring_setup", ENOSYS), R("io_uring_enter", ENOSYS), R("io_uring_register", ENOSYS),
	R("userfaultfd", EPERM), R("bpf", EPERM), R("perf_event_open", EACCES), R("keyctl", ENOSYS),
	R("add_key", ENOSYS), R("request_key", ENOSYS), R("modify_ldt", ENOSYS),
	R("open_by_handle_at", EPERM), R("fanotify_init", EPERM), R("fanotify_mark", EPERM),
	R("lookup_dcookie", EPERM), R("memfd_secret", ENOSYS), R("set_mempolicy_home_node", ENOSYS),
	S("lsm_get_self_attr", ENOSYS), R("lsm_set_self_attr", ENOSYS), S("lsm_list_modules", ENOSYS),
	S("file_getattr", ENOSYS), R("file_setattr", ENOSYS), R("rseq_slice_yield", ENOSYS),

	/* the same; and all boxes together, with the host's databases, would share one small number of
	   requests (fs.aio-max-nr) */
	R("io_setup", ENOSYS), R("io_destroy", ENOSYS), R("io_getevents", ENOSYS), R("io_submit", ENOSYS),
	R("io_cancel", ENOSYS), R("io_pgetevents", ENOSYS),

	/* the machine's administration */
	R("acct", EPERM), R("adjtimex", EPERM), R("clock_adjtime", EPERM), R("clock_settime", EPERM),
	R("settimeofday", EPERM), R("delete_module", EPERM), R("finit_module", EPERM),
	R("init_module", EPERM), R("ioperm", EPERM), R("iopl", EPERM), R("kexec_file_load", EPERM),
	R("kexec_load", EPERM), R("quotactl", EPERM), R("quotactl_fd", EPERM), R("reboot", EPERM),
	R("swapoff", EPERM), R("swapon", EPERM), R("syslog", EPERM), R("vhangup", EPERM),

	/* what has been taken out of Linux, or never was in it */
	R("_sysctl", ENOSYS), R("afs_syscall", ENOSYS), R("create_module", ENOSYS),
	R("epoll_ctl_old", ENOSYS), R("epoll_wait_old", ENOSYS), R("get_kernel_syms", ENOSYS),
	R("getpmsg", ENOSYS), R("nfsservctl", ENOSYS), R("putpmsg", ENOSYS), R("query_module", ENOSYS),
	R("security", ENOSYS), R("sysfs", ENOSYS), R("tuxcall", ENOSYS), R("uselib", ENOSYS),
	R("ustat", ENOSYS), R("vserver", ENOSYS),
	/* clang-format on */
};
const size_t seccomp_nrows = sizeof(seccomp_rows) / sizeof(seccomp_rows[0]);

const struct seccomp_number seccomp_numbers[] = {
	{"uretprobe", 335, -1},
	{"cachestat", 451, 451},
	{"fchmodat2", 452, 452},
	{"map_shadow_stack", 453, 453},
	{"futex_wake", 454, 454},
	{"futex_wait", 455, 455},
	{"futex_requeue", 456, 456},
	{"statmount", 457, 457},
	{"listmount", 458, 458},
	{"lsm_get_self_attr", 459, 459},
	{"lsm_set_self_attr", 460, 460},
	{"lsm_list_modules", 461, 461},
	{"mseal", 462, 462},
	{"setxattrat", 463, 463},
	{"getxattrat", 464, 464},
	{"listxattrat", 465, 465},
	{"removexattrat", 466, 466},
	{"open_tree_attr", 467, 467},
	{"file_getattr", 468, 468},
	{"file_setattr", 469, 469},
	{"listns", 470, 470},
	{"rseq_slice_yield", 471, 471},
};
const size_t seccomp_nnumbers = sizeof(seccomp_numbers) / sizeof(seccomp_numbers[0]);

static bool test_holds(const struct seccomp_test *t, const uint64_t args[6])
{
	uint32_t low = (uint32_t)args[t->arg];

	switch ((enum seccomp_op)t->op) {
	case SECCOMP_EQ: return (low & t->mask) == t->value;
	case SECCOMP_NE: return (low & t->mask) != t->value;
	case SECCOMP_POINTER: return args[t->arg] != 0;
	}
	return false;
}

struct seccomp_verdict seccomp_row_verdict(const struct seccomp_row *row,
					   enum policy_profile profile, unsigned watch,
					   const uint64_t args[6])
{
	struct seccomp_verdict v = {SECCOMP_REFUSE, SECCOMP_UNKNOWN_ERRNO};

	if (!row)
		return v;
	v = (struct seccomp_verdict){row->action[profile], row->error};
	for (const struct seccomp_case *c = seccomp_row_cases(row); c->profiles; c++) {
		bool match = (c->profiles & (1u << profile)) && (!c->watch || (c->watch & watch));

		for (unsigned i = 0; match && i < c->ntests; i++)
			match = test_holds(&c->tests[i], args);
		if (match) {
			v = (struct seccomp_verdict){c->action, c->error};
			break;
		}
	}
	if (v.action == SECCOMP_ALLOW || v.action == SECCOMP_REPORT)
		v.error = 0; /* a row has an errno for the profiles in which it is refused */
	return v;
}
