/* The listener with real filters: a forked child makes calls, the test is its supervisor. Each test
 * checks what the child got and what was told. */
#include "supervise/notify.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"

#define MAX_EVENTS 4096

static struct notify_event events[MAX_EVENTS];
static size_t nevents;
static unsigned stderr_calls;

static void sink(void *arg, const struct notify_event *ev)
{
	(void)arg;
	assert_true(nevents < MAX_EVENTS);
	events[nevents++] = *ev;
}

static void on_output_write(void *arg, pid_t pid)
{
	(void)arg;
	assert_true(pid > 0);
	stderr_calls++;
}

/* Runs the child under the filter until it has ended; its exit status. 77: cannot be tested here.
 */
static int supervise(enum policy_profile profile, unsigned watch, bool prepare(void),
		     int child(void))
{
	int pair[2], listener = -1, status;
	struct notify *n = NULL;
	struct pale_err err;
	size_t nfds;
	char byte;
	pid_t pid;

	nevents = stderr_calls = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		if (prepare && !prepare())
			_exit(77);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (seccomp_install_send(profile, watch, pair[1], "L", 1) < 0)
			_exit(76);
		_exit(child());
	}
	close(pair[1]);
	if (fd_recv(pair[0], &byte, 1, &listener, 1, &nfds) == 1 && nfds == 1) {
		struct notify_config config = {.listener = listener,
					       .profile = profile,
					       .watch = watch,
					       .root = -1,
					       .sink = sink,
					       .on_output_write = on_output_write};
		int r = 0;

		assert_int_equal(notify_new(&config, &n, &err), 0);
		while (r == 0) {
			struct pollfd p = {.fd = notify_fd(n), .events = POLLIN};

			assert_true(poll(&p, 1, 10000) > 0);
			r = notify_handle(n);
		}
		assert_int_equal(r, -EPIPE);
		notify_flush(n);
		notify_free(n);
	}
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void must_or_skip(int status, const char *ability)
{
	const char *must = getenv("PALE_MUST_WORK");

	if (status == 77 || status == 76) {
		if (must && strstr(must, ability))
			fail_msg("%s must work here", ability);
		print_message("# SKIP: no %s here\n", ability);
		skip();
	}
	assert_int_equal(status, 0);
}

static const struct notify_event *find(const char *call, const char *detail)
{
	for (size_t i = 0; i < nevents; i++)
		if (strcmp(events[i].call, call) == 0 && strcmp(events[i].detail, detail) == 0)
			return &events[i];
	return NULL;
}

static const struct notify_event *find_path(const char *suffix)
{
	for (size_t i = 0; i < nevents; i++) {
		size_t have = strlen(events[i].path), want = strlen(suffix);

		if (have >= want && strcmp(events[i].path + have - want, suffix) == 0)
			return &events[i];
	}
	return NULL;
}

static const struct notify_event *find_address(const char *address, unsigned port)
{
	for (size_t i = 0; i < nevents; i++)
		if (strcmp(events[i].address, address) == 0 && events[i].port == port)
			return &events[i];
	return NULL;
}

#define CHECK(condition)                                                                          \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			dprintf(1, "# line %d: " #condition ": %s\n", __LINE__, strerror(errno)); \
			return 1;                                                                 \
		}                                                                                 \
	} while (0)
#define FAILS(call, error) CHECK((call) == -1 && errno == (error))

static int refused_child(void)
{
	FAILS(syscall(SYS_keyctl, 0, 0, 0), ENOSYS);
	FAILS(syscall(SYS_bpf, 0, 0, 0), EPERM);
	FAILS(syscall(SYS_clone3, 0, 0), ENOSYS);
	FAILS(syscall(500, 0), ENOSYS);
	FAILS(socket(38, SOCK_SEQPACKET, 0), EAFNOSUPPORT);
	FAILS(unshare(CLONE_NEWUSER | CLONE_NEWNET), EPERM);
	FAILS(ioctl(0, 0x5412, "x"), EPERM);
#ifdef __x86_64__
	FAILS(syscall(SYS_getpid | 0x40000000), ENOSYS);
	int r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
	CHECK(r == -ENOSYS || r == 0x14);
#endif
	CHECK(getppid() > 0);
	return 0;
}

static void test_refused(void **state)
{
	const struct notify_event *ev;

	(void)state;
	must_or_skip(supervise(PROFILE_DEFAULT, 0, NULL, refused_child), "seccomp");
	ev = find("keyctl", "");
	assert_non_null(ev);
	assert_int_equal(ev->kind, NOTIFY_CALL);
	assert_int_equal(ev->error, ENOSYS);
	assert_int_equal(ev->count, 1);
	assert_true(ev->pid > 0);
	assert_string_equal(ev->comm, "test-seccomp-no");
	assert_non_null(strstr(ev->exe, "/test-seccomp-notify"));
	assert_non_null(find("500", ""));
	assert_non_null(find("socket", "AF_ALG"));
	assert_non_null(find("unshare", "CLONE_NEWUSER|CLONE_NEWNET"));
	assert_non_null(find("ioctl", "TIOCSTI"));
	assert_null(find("clone3", ""));
#ifdef __x86_64__
	assert_non_null(find("x32:getpid", ""));
#endif
}

static int flood_child(void)
{
	for (int i = 0; i < 1000; i++)
		FAILS(syscall(SYS_bpf, 0, 0, 0), EPERM);
	return 0;
}

static void test_flood(void **state)
{
	(void)state;
	must_or_skip(supervise(PROFILE_DEFAULT, 0, NULL, flood_child), "seccomp");
	assert_int_equal(nevents, 21);
	assert_true(events[20].is_total);
	assert_int_equal(events[20].count, 980);
	assert_int_equal(events[20].total, 1000);
}

/* Its own network if it may: nothing is then sent anywhere. */
static bool own_network(void)
{
	(void)!unshare(CLONE_NEWUSER | CLONE_NEWNET);
	return true;
}

static int connect4(int type, const char *ip, uint16_t port)
{
	int fd = socket(AF_INET, type | SOCK_NONBLOCK, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, ip, &a.sin_addr);
	connect(fd, (struct sockaddr *)&a, sizeof(a));
	close(fd);
	return fd;
}

static int network_child(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(53)};
	struct sockaddr_in6 b = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
	struct sockaddr_un u = {.sun_family = AF_UNIX, .sun_path = "/nowhere"};
	struct sockaddr_nl nl = {.nl_family = AF_NETLINK};
	struct iovec iov = {(char[]){"x"}, 1};
	struct mmsghdr m[3] = {0};
	struct sockaddr_in to[3];
	int fd;

	CHECK(connect4(SOCK_STREAM, "192.0.2.1", 80) >= 0);
	CHECK(connect4(SOCK_STREAM, "127.0.0.2", 81) >= 0);
	CHECK(connect4(SOCK_STREAM, "0.0.0.0", 82) >= 0);
	CHECK(connect4(SOCK_DGRAM, "192.0.2.2", 9) >= 0);

	fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd >= 0) {
		inet_pton(AF_INET6, "2001:db8::1", &b.sin6_addr);
		connect(fd, (struct sockaddr *)&b, sizeof(b));
		inet_pton(AF_INET6, "::ffff:192.0.2.3", &b.sin6_addr);
		connect(fd, (struct sockaddr *)&b, sizeof(b));
		inet_pton(AF_INET6, "::1", &b.sin6_addr);
		b.sin6_port = htons(83);
		connect(fd, (struct sockaddr *)&b, sizeof(b));
		close(fd);
	}
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	FAILS(connect(fd, (struct sockaddr *)&u, sizeof(u)), ENOENT);
	close(fd);
	fd = socket(AF_NETLINK, SOCK_RAW, 0);
	CHECK(connect(fd, (struct sockaddr *)&nl, sizeof(nl)) == 0);
	close(fd);

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	inet_pton(AF_INET, "192.0.2.4", &a.sin_addr);
	sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a));
	for (int i = 0; i < 3; i++) {
		to[i] = a;
		to[i].sin_port = htons((uint16_t)(5000 + i));
		m[i].msg_hdr = (struct msghdr){.msg_name = &to[i],
					       .msg_namelen = sizeof(a),
					       .msg_iov = &iov,
					       .msg_iovlen = 1};
	}
	/* Not through a wrapper: the call itself is what counts. */
	for (int i = 0; i < 3; i++)
		syscall(SYS_sendmsg, fd, &m[i].msg_hdr, 0);
	for (int i = 0; i < 3; i++)
		to[i].sin_port = htons((uint16_t)(6000 + i));
	syscall(SYS_sendmmsg, fd, m, 3, 0);

	/* Lies: none may hurt the supervisor. */
	FAILS(connect(fd, (struct sockaddr *)8, sizeof(a)), EFAULT);
	FAILS(connect(fd, (struct sockaddr *)~0ul, ~0u), EINVAL);
	syscall(SYS_sendmsg, fd, (void *)16, 0);
	syscall(SYS_sendmmsg, fd, ~0ul - 64, ~0u, 0);
	syscall(SYS_sendto, 12345, 0, 0, 0, &a, 2);
	syscall(SYS_connect, fd, &a, 1);
	return 0;
}

static void test_network(void **state)
{
	const struct notify_event *ev;

	(void)state;
	must_or_skip(supervise(PROFILE_DEFAULT, 0, own_network, network_child), "seccomp");
	ev = find_address("192.0.2.1", 80);
	assert_non_null(ev);
	assert_int_equal(ev->kind, NOTIFY_NETWORK);
	assert_int_equal(ev->op, NOTIFY_OP_CONNECT);
	assert_string_equal(ev->protocol, "tcp");
	assert_string_equal(ev->call, "connect");
	ev = find_address("192.0.2.2", 9);
	assert_non_null(ev);
	assert_int_equal(ev->op, NOTIFY_OP_PROBE);
	assert_string_equal(ev->protocol, "udp");
	ev = find_address("192.0.2.4", 53);
	assert_non_null(ev);
	assert_int_equal(ev->op, NOTIFY_OP_SEND);
	assert_string_equal(ev->protocol, "udp");
	for (unsigned i = 0; i < 3; i++) {
		assert_non_null(find_address("192.0.2.4", 5000 + i));
		assert_non_null(find_address("192.0.2.4", 6000 + i));
	}
	for (size_t i = 0; i < nevents; i++) {
		assert_false(events[i].port >= 81 && events[i].port <= 83);
		assert_true(events[i].address[0]);
	}
}

static int various_child(void)
{
	for (int i = 1; i <= 2000; i++)
		connect4(SOCK_DGRAM, "192.0.2.1", (uint16_t)i);
	return 0;
}

/* More sorts than are kept apart: still counted exactly. */
static void test_overflow(void **state)
{
	uint64_t sum = 0, overflow = 0;

	(void)state;
	must_or_skip(supervise(PROFILE_DEFAULT, 0, own_network, various_child), "seccomp");
	for (size_t i = 0; i < nevents; i++) {
		sum += events[i].count;
		overflow += events[i].is_overflow ? events[i].count : 0;
	}
	assert_int_equal(sum, 2000);
	assert_true(overflow >= 1000 && overflow < 2000);
}

static int stderr_child(void)
{
	int null = open("/dev/null", O_WRONLY);

	dup2(null, 2);
	CHECK(write(2, "x", 1) == 1);
	CHECK(write(null, "x", 1) == 1);
	dprintf(2, "y");
	return 0;
}

static void test_stderr(void **state)
{
	(void)state;
	must_or_skip(supervise(PROFILE_DEFAULT, SECCOMP_WATCH_OUTPUT, NULL, stderr_child),
		     "seccomp");
	assert_int_equal(stderr_calls, 2);
	assert_int_equal(nevents, 0);
}

static char dir[] = "/tmp/pale-test-notify-XXXXXX";

static bool own_mounts(void)
{
	char path[128];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return false;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	/* The box does not have this one... */
	if (mount("t", "/etc", "tmpfs", 0, "mode=755") < 0)
		return false;
	/* ...and has this one read-only. */
	snprintf(path, sizeof(path), "%s/ro", dir);
	return mount(path, path, NULL, MS_BIND, NULL) == 0 &&
	       mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV,
		     NULL) == 0;
}

static int files_child(void)
{
	struct open_how how = {.flags = O_RDWR | O_CREAT, .mode = 0600};
	char *edge;
	int fd;

	FAILS(open("/etc/passwd", O_RDONLY), ENOENT);
	FAILS(open("//etc/./group", O_RDONLY), ENOENT);
	FAILS(open("/etc/pale-is-nowhere", O_RDONLY), ENOENT);
	FAILS(open("/pale-nowhere/at/all", O_RDONLY | O_CREAT, 0600), ENOENT);
	CHECK(chdir(dir) == 0);
	CHECK((fd = open("rw/new", O_RDWR | O_CREAT, 0600)) >= 0);
	close(fd);
	CHECK(unlink("rw/new") == 0);
	CHECK((fd = open("ro/file", O_RDONLY)) >= 0);
	close(fd);
	FAILS(open("ro/file", O_RDWR), EROFS);
	FAILS(open("ro/made", O_WRONLY | O_CREAT, 0600), EROFS);
	FAILS(mkdir("ro/dir/", 0700), EROFS);
	FAILS(syscall(SYS_openat2, AT_FDCWD, "ro/how", &how, sizeof(how)), EROFS);
	CHECK((fd = open("ro", O_PATH | O_DIRECTORY)) >= 0);
	FAILS(unlinkat(fd, "file", 0), EROFS);
	FAILS(fchmodat(fd, "file", 0777, 0), EROFS);
	FAILS(renameat(fd, "file", fd, "moved"), EROFS);
	FAILS(symlinkat("x", fd, "link"), EROFS);
	close(fd);

	/* Lies, and a path that ends where the memory ends. */
	FAILS(open((char *)8, O_RDONLY), EFAULT);
	FAILS(syscall(SYS_openat2, AT_FDCWD, "x", (void *)8, sizeof(how)), EFAULT);
	FAILS(openat(12345, "x", O_RDONLY), EBADF);
	FAILS(open("", O_WRONLY), ENOENT);
	edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(edge + 4096, 4096);
	memcpy(edge + 4096 - 12, "/etc/passwd", 12);
	FAILS(open(edge + 4096 - 12, O_RDONLY), ENOENT);
	edge[4095] = 'x';
	FAILS(open(edge + 4096 - 12, O_RDONLY), EFAULT);
	return 0;
}

static void test_files(void **state)
{
	static const struct {
		const char *suffix;
		int error;
		enum notify_op op;
	} rows[] = {
		{"/etc/passwd", ENOENT, NOTIFY_OP_READ}, {"ro/file", EROFS, NOTIFY_OP_WRITE},
		{"ro/made", EROFS, NOTIFY_OP_WRITE},	 {"ro/dir", EROFS, NOTIFY_OP_CREATE},
		{"ro/how", EROFS, NOTIFY_OP_WRITE},	 {"ro/moved", EROFS, NOTIFY_OP_CREATE},
		{"ro/link", EROFS, NOTIFY_OP_CREATE},
	};
	char path[128];
	size_t passwd = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, i ? "rw" : "ro");
		assert_int_equal(mkdir(path, 0755), 0);
		snprintf(path, sizeof(path), "%s/%s/file", dir, i ? "rw" : "ro");
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	}
	int status = supervise(PROFILE_DEFAULT, SECCOMP_WATCH_FILES, own_mounts, files_child);

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s/file", dir, i ? "rw" : "ro");
		unlink(path);
		snprintf(path, sizeof(path), "%s/%s", dir, i ? "rw" : "ro");
		rmdir(path);
	}
	rmdir(dir);
	must_or_skip(status, "userns");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct notify_event *ev = find_path(rows[i].suffix);

		if (!ev)
			fail_msg("no event for %s", rows[i].suffix);
		assert_int_equal(ev->kind, NOTIFY_FILE);
		assert_int_equal(ev->error, rows[i].error);
		assert_int_equal(ev->op, rows[i].op);
	}
	assert_non_null(find_path("/etc/group"));
	assert_null(find_path("nowhere"));
	assert_null(find_path("at/all"));
	assert_null(find_path("rw/new"));
	for (size_t i = 0; i < nevents; i++)
		passwd += strcmp(events[i].path, "/etc/passwd") == 0;
	assert_int_equal(passwd, 2);
}

/* Random bytes as addresses, messages and paths: nothing of it may work, or hurt the supervisor. */
static int hostile_child(void)
{
	unsigned char *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int pair[2];

	if (page == MAP_FAILED || munmap(page + 4096, 4096) < 0 ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) < 0)
		return 1;
	srand(1);
	for (int i = 0; i < 4000; i++) {
		unsigned offset = (unsigned)rand() % 4096;
		void *at = page + offset;
		unsigned len = (unsigned)rand() % 200;

		for (unsigned b = offset; b < 4096 && b < offset + 256; b++)
			page[b] = (unsigned char)rand();
		if (offset < 4000) {
			static const uint16_t families[] = {AF_INET, AF_INET6, AF_UNIX, AF_PACKET,
							    0xffff};
			uint64_t inside = (uint64_t)(uintptr_t)(page + (unsigned)rand() % 4096);

			memcpy(at, &families[rand() % 5], 2);
			if (rand() % 2)
				memcpy(at, &inside, 8); /* a message whose name is in the page */
		}
		switch (rand() % 6) {
		case 0: syscall(SYS_connect, pair[0], at, len); break;
		case 1: syscall(SYS_sendto, -1, at, 1, 0, at, len); break;
		case 2: syscall(SYS_sendmsg, -1, at, 0); break;
		case 3: syscall(SYS_sendmmsg, -1, at, rand(), 0); break;
		case 4:
			syscall(SYS_openat, rand() % 64 - 1, at,
				O_RDONLY | O_NONBLOCK | O_DIRECTORY);
			break;
		case 5: syscall(SYS_openat2, AT_FDCWD, at, at, len); break;
		}
	}
	return 0;
}

static void test_hostile(void **state)
{
	(void)state;
	must_or_skip(supervise(PROFILE_DEFAULT, SECCOMP_WATCH_FILES, own_network, hostile_child),
		     "seccomp");
	for (size_t i = 0; i < nevents; i++) {
		assert_true(strnlen(events[i].address, sizeof(events[i].address)) <
			    sizeof(events[i].address));
		assert_true(strnlen(events[i].path, sizeof(events[i].path)) <
			    sizeof(events[i].path));
	}
}

/* Threads that come and go and are killed while they wait. */
static int killed_child(void)
{
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		if (pid == 0)
			for (;;)
				syscall(SYS_bpf, 0, 0, 0);
		usleep(200);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return 0;
}

static void test_killed(void **state)
{
	(void)state;
	must_or_skip(supervise(PROFILE_DEFAULT, 0, NULL, killed_child), "seccomp");
	assert_true(nevents > 0);
}

static int measure_child(void)
{
	uint64_t start = clock_mono_us();

	for (int i = 0; i < 2000; i++)
		syscall(SYS_bpf, 0, 0, 0);
	dprintf(1, "# a refused and reported call: %.1f us\n",
		(double)(clock_mono_us() - start) / 2000);
	start = clock_mono_us();
	for (int i = 0; i < 2000; i++)
		(void)!write(2, "", 0);
	dprintf(1, "# a reported write to stderr: %.1f us\n",
		(double)(clock_mono_us() - start) / 2000);
	start = clock_mono_us();
	for (int i = 0; i < 100000; i++)
		syscall(SYS_getppid);
	dprintf(1, "# getppid: %.3f us\n", (double)(clock_mono_us() - start) / 100000);
	return 0;
}

static void test_cost(void **state)
{
	(void)state;
	must_or_skip(supervise(PROFILE_DEFAULT, SECCOMP_WATCH_OUTPUT, NULL, measure_child),
		     "seccomp");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused), cmocka_unit_test(test_flood),
		cmocka_unit_test(test_network), cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_stderr),	cmocka_unit_test(test_files),
		cmocka_unit_test(test_hostile), cmocka_unit_test(test_killed),
		cmocka_unit_test(test_cost),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
