/* What the supervisor passes on of what comes out of a box for a published port: only TCP sockets
 * of the box's own network, for requests of its own. The file under test is compiled in, so that
 * the broker's side can be played here. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <cmocka.h>

/* What broker_connected() was told last. */
static int told_error, told_fd, times;
static uint32_t told_id;

#define broker_connected test_connected
#include "../../src/supervise/inbound.c"
#undef broker_connected

void test_connected(struct broker *b, uint32_t id, int error, int fd)
{
	(void)b;
	told_id = id;
	told_error = error;
	told_fd = fd;
	times++;
}

static struct network_publish ports[] = {{.port = 8080}, {.port = 9090}};
static struct policy_network network = {.publish = ports, .npublish = 2};
static struct plan plan = {.network = &network};
static struct inbound in;
static struct run run;
static int init_end;

/* TCP, connected to a listener, in the network namespace of the caller. */
static int connected(int family)
{
	_cleanup_close_ int l = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage at = {.ss_family = (sa_family_t)family};
	socklen_t len = sizeof(at);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (family == AF_INET)
		((struct sockaddr_in *)&at)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)&at)->sin6_addr = in6addr_loopback;
	assert_int_equal(bind(l, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, len), 0);
	return fd;
}

/* A process in another network namespace sends these out: TCP, TCP over IPv6, UDP, a listener. */
static void get_foreign(int fds[static 4])
{
	int pair[2], up;
	size_t n;
	char byte;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		struct {
			char name[16];
			short flags;
			char rest[24];
		} lo = {"lo", 1, ""};

		if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWNET | CLONE_NEWUSER) < 0)
			_exit(1);
		up = socket(AF_INET, SOCK_DGRAM, 0);
		if (ioctl(up, 0x8914 /* SIOCSIFFLAGS */, &lo) < 0)
			_exit(1);
		fds[0] = connected(AF_INET);
		fds[1] = connected(AF_INET6);
		fds[2] = socket(AF_INET, SOCK_DGRAM, 0);
		fds[3] = socket(AF_INET, SOCK_STREAM, 0);
		if (listen(fds[3], 1) < 0)
			_exit(1);
		_exit(fd_send(pair[1], "x", 1, fds, 4) < 0);
	}
	close(pair[1]);
	assert_int_equal(fd_recv(pair[0], &byte, 1, fds, 4, &n), 1);
	assert_int_equal(n, 4);
	waitpid(pid, NULL, 0);
	close(pair[0]);
}

/* A request, and what the first process is asked. */
static uint32_t want(uint32_t broker_id, uint32_t index)
{
	struct init_message m = {0};

	times = 0;
	inbound_wanted(&run, broker_id, index);
	if (recv(init_end, &m, sizeof(m), MSG_DONTWAIT) != sizeof(m))
		return UINT32_MAX;
	assert_int_equal(m.kind, INIT_CONNECT);
	assert_int_equal(m.value, ports[index].port);
	return m.id;
}

static void answer(uint32_t id, int value, int fd)
{
	const struct init_message m = {.kind = INIT_CONNECTED, .value = value, .id = id};
	struct init_message got;
	int got_fd;

	assert_int_equal(fd_send(init_end, &m, sizeof(m), &fd, fd >= 0), 0);
	assert_int_equal(inbound_hear(&run, &got, &got_fd), sizeof(got));
	assert_int_equal(got_fd >= 0, fd >= 0);
	inbound_made(&run, &got, got_fd);
}

static int set_up(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	run = (struct run){.plan = &plan, .inbound = &in, .box = {.control_fd = pair[0]}};
	in = (struct inbound){.netns = 0};
	init_end = pair[1];
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(run.box.control_fd);
	close(init_end);
	return 0;
}

static void only_the_boxs_sockets(void **state)
{
	int fds[4], own = connected(AF_INET), unix_pair[2], file = open("/dev/null", O_RDWR);
	socklen_t len = sizeof(in.netns);

	(void)state;
	get_foreign(fds);
	assert_int_equal(getsockopt(fds[3], SOL_SOCKET, SO_NETNS_COOKIE, &in.netns, &len), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, unix_pair), 0);
	for (int i = 0; i < 2; i++) {
		answer(want(7, 0), 0, fds[i]);
		assert_int_equal(times, 1);
		assert_int_equal(told_id, 7);
		assert_int_equal(told_error, 0);
		assert_true(told_fd >= 0);
	}
	/* Of this process's network; datagrams; a listener; other kinds. */
	const int wrong[] = {own, fds[2], fds[3], unix_pair[0], file};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		answer(want(8, 1), 0, wrong[i]);
		assert_int_equal(times, 1);
		assert_int_equal(told_fd, -1);
		assert_int_equal(told_error, EPROTO);
	}
	/* The same socket would pass if it were not for its network. */
	assert_int_equal(getsockopt(own, SOL_SOCKET, SO_NETNS_COOKIE, &in.netns, &len), 0);
	answer(want(9, 1), 0, own);
	assert_true(told_fd >= 0);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	close(own);
	close(unix_pair[0]);
	close(unix_pair[1]);
	close(file);
}

static void only_what_was_asked(void **state)
{
	uint32_t id = want(1, 0);
	int fd = open("/dev/null", O_RDONLY);

	(void)state;
	answer(id + 1, 0, fd);
	assert_int_equal(times, 0);
	answer(id, ECONNREFUSED, -1);
	assert_int_equal(told_error, ECONNREFUSED);
	answer(id, 0, fd);
	assert_int_equal(times, 1);
	/* Errors that make no sense. */
	answer(want(2, 0), -1, -1);
	assert_int_equal(told_error, EPROTO);
	answer(want(3, 0), INT32_MAX, -1);
	assert_int_equal(told_error, EPROTO);
	/* A port that the policy does not publish. */
	assert_int_equal(want(4, 2), UINT32_MAX);
	assert_int_equal(told_error, EACCES);
	/* More than is answered. */
	for (unsigned i = 0; i < ASKED_MAX; i++)
		assert_int_not_equal(want(100 + i, 0), UINT32_MAX);
	assert_int_equal(want(5, 0), UINT32_MAX);
	assert_int_equal(told_error, EAGAIN);
	close(fd);
}

static void descriptors_do_not_pile_up(void **state)
{
	int fds[3] = {open("/dev/null", O_RDONLY), 0, 0}, before = dup(0), after;
	const struct init_message m = {.kind = INIT_CONNECTED};
	struct init_message got;
	int fd;

	(void)state;
	fds[1] = fds[2] = fds[0];
	close(before);
	assert_int_equal(fd_send(init_end, &m, sizeof(m), fds, 3), 0);
	assert_int_equal(inbound_hear(&run, &got, &fd), sizeof(got));
	if (fd >= 0)
		close(fd);
	/* Without published ports none are taken at all. */
	run.inbound = NULL;
	assert_int_equal(fd_send(init_end, &m, sizeof(m), fds, 3), 0);
	assert_int_equal(inbound_hear(&run, &got, &fd), sizeof(got));
	assert_int_equal(fd, -1);
	inbound_made(&run, &got, fd);
	after = dup(0);
	assert_int_equal(after, before);
	close(after);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_the_boxs_sockets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_what_was_asked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(descriptors_do_not_pile_up, set_up, tear_down),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
