/* The broker's lock-down bites: each attempt works in a child without it, and fails in one with it;
 * and what the broker does still works. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "egress/lock.h"

static const struct sockaddr_in anywhere = {.sin_family = AF_INET, .sin_addr.s_addr = 0x0100007f};

static int result(long r)
{
	return r < 0 ? errno : 0;
}

static int try_open(void)
{
	return result(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static int try_stat(void)
{
	struct stat st;

	return result(stat("/etc/passwd", &st));
}

static int try_exec(void)
{
	/* Which path there is does not matter where there is no call. */
	return result(execl("/bin/true", "true", NULL));
}

static int try_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return result(pid);
}

static int try_kill(void)
{
	return result(kill(getppid(), 0));
}

static int try_ptrace(void)
{
	return result(ptrace(PTRACE_TRACEME, 0, 0, 0));
}

static int try_bind(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return result(bind(fd, (const struct sockaddr *)&anywhere, sizeof(anywhere)));
}

static int try_bind_udp(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return result(bind(fd, (const struct sockaddr *)&anywhere, sizeof(anywhere)));
}

static int try_unix(void)
{
	return result(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int try_netlink(void)
{
	return result(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int try_listen(void)
{
	return result(listen(socket(AF_INET, SOCK_STREAM, 0), 1));
}

static int try_filter(void)
{
	struct sock_filter pass = {BPF_RET | BPF_K, 0, 0, 0xffff};
	struct sock_fprog program = {1, &pass};

	return result(setsockopt(socket(AF_INET, SOCK_DGRAM, 0), SOL_SOCKET, SO_ATTACH_FILTER,
				 &program, sizeof(program)));
}

static int try_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED
		       ? errno
		       : 0;
}

static int try_make_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return result(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int try_dup(void)
{
	return result(dup2(0, 200));
}

static int try_close_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	/* Its number is what the broker's UDP sockets have. */
	if (fcntl(LOCK_UDP_FIRST, F_GETFD) < 0)
		dup2(fd, LOCK_UDP_FIRST);
	return result(close(LOCK_UDP_FIRST));
}

static int try_setns(void)
{
	return result(unshare(0));
}

static int try_process_memory(void)
{
	char from = 'x', to;
	struct iovec mine = {&to, 1}, theirs = {&from, 1};

	return result(process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0));
}

static const struct {
	const char *what;
	int (*attempt)(void);
} attempts[] = {
	{"open a file", try_open},
	{"look at a path", try_stat},
	{"execute", try_exec},
	{"fork", try_fork},
	{"signal another process", try_kill},
	{"ptrace", try_ptrace},
	{"bind a TCP port", try_bind},
	{"bind a UDP port of the host's", try_bind_udp},
	{"listen", try_listen},
	{"a Unix socket", try_unix},
	{"a netlink socket", try_netlink},
	{"a filter on a socket", try_filter},
	{"map code", try_code},
	{"make code", try_make_code},
	{"duplicate a descriptor", try_dup},
	{"close a socket of the box", try_close_socket},
	{"namespaces", try_setns},
	{"memory of a process", try_process_memory},
};

static int in_child(int (*fn)(void), bool locked)
{
	struct config c = {.uid = 65534, .gid = 65534};
	struct pale_err err = {0};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (locked) {
			/* Where the broker has the box's. */
			int fd = socket(AF_INET, SOCK_DGRAM, 0);

			dup2(fd, LOCK_UDP_FIRST);
			close(fd);
			if (lock_privileges(&c, &err) < 0 || lock_calls(&err) < 0)
				_exit(255);
		}
		_exit(fn());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status))
		return 256 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

static void test_attempts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		int free = in_child(attempts[i].attempt, false);
		int locked = in_child(attempts[i].attempt, true);

		if (free != 0)
			print_message("# without the lock, too: %s: %s\n", attempts[i].what,
				      strerror(free));
		assert_int_equal(free, 0);
		if (locked != EPERM)
			print_message("# %s: %d\n", attempts[i].what, locked);
		assert_int_equal(locked, EPERM);
	}
}

/* Landlock by itself: what it holds if the filter should have a hole. */
static int landlocked(void)
{
	struct config c = {.uid = 65534, .gid = 65534};
	struct pale_err err = {0};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (lock_privileges(&c, &err) < 0)
		return 255;
	if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES)
		return 1;
	if (execl("/bin/true", "true", NULL) == 0 || errno != EACCES)
		return 2;
	if (kill(getppid(), 0) == 0)
		return 3;
	if (bind(fd, (const struct sockaddr *)&anywhere, sizeof(anywhere)) == 0 || errno != EACCES)
		return 4;
	return 0;
}

static void test_landlock(void **state)
{
	(void)state;
	if (syscall(444 /* landlock_create_ruleset */, NULL, 0, 1) < 4) {
		print_message("# SKIP this kernel's Landlock is too old\n");
		skip();
	}
	assert_int_equal(in_child(landlocked, false), 0);
}

static int works(void)
{
	const int on = 1;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	struct rlimit core;
	int fds[2], s;
	char c = 'x';

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0 || close(s) < 0)
		return 1;
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0)
		return 2;
	if (pipe2(fds, O_CLOEXEC) < 0 || write(fds[1], &c, 1) != 1 ||
	    splice(fds[0], NULL, s, NULL, 1, 0) < 0)
		return 3;
	to.sin_port = 0;
	if (bind(LOCK_UDP_FIRST, (struct sockaddr *)&to, sizeof(to)) < 0)
		return 4;
	if (!malloc(4 << 20) || getpid() <= 0)
		return 5;
	/* Gone for good. */
	if (geteuid() == 0 || setuid(0) == 0)
		return 6;
	/* getrlimit() is not among the calls; prlimit64 neither. */
	if (getrlimit(RLIMIT_CORE, &core) == 0)
		return 7;
	return 0;
}

static void test_works(void **state)
{
	(void)state;
	assert_int_equal(in_child(works, true), 0);
}

static int dumpable(void)
{
	struct config c = {.uid = 65534, .gid = 65534};
	struct pale_err err = {0};
	struct rlimit r;

	if (lock_privileges(&c, &err) < 0)
		return 255;
	if (prctl(PR_GET_DUMPABLE) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 1;
	if (getrlimit(RLIMIT_CORE, &r) < 0 || r.rlim_max > 1)
		return 2;
	return getrlimit(RLIMIT_FSIZE, &r) < 0 || r.rlim_max != 0 ? 3 : 0;
}

static void test_dumpable(void **state)
{
	(void)state;
	assert_int_equal(in_child(dumpable, false), 0);
}

static int root_without_id(void)
{
	struct config c = {0};
	struct pale_err err = {0};

	return lock_privileges(&c, &err) < 0 ? 0 : 1;
}

static void test_root(void **state)
{
	(void)state;
	assert_int_equal(in_child(root_without_id, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attempts), cmocka_unit_test(test_landlock),
		cmocka_unit_test(test_works),	 cmocka_unit_test(test_dumpable),
		cmocka_unit_test(test_root),
	};
	const struct CMUnitTest unprivileged[] = {
		cmocka_unit_test(test_attempts),
		cmocka_unit_test(test_landlock),
		cmocka_unit_test(test_works),
		cmocka_unit_test(test_dumpable),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	/* The last is about what only root can be. */
	if (geteuid() != 0)
		return cmocka_run_group_tests_name("egress/lock", unprivileged, NULL, NULL);
	return cmocka_run_group_tests_name("egress/lock", tests, NULL, NULL);
}
