/* Control groups on this host: made, joined, exceeded, killed, removed. Needs a host where this
 * user can make them (PALE_MUST_WORK=cgroup: then it must be one). */
#include "confine/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/sched.h>

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/clock.h"

static struct cgroup_host host;
static int counter;

/* A child that has joined the group and runs work(); 0 in the parent's view: its pid. */
static pid_t start(struct cgroup *g, void (*work)(void))
{
	struct pale_err err;
	int fds[CGROUP_JOIN_MAX], ready[2], go[2];
	size_t n = cgroup_join_fds(g, fds);
	struct clone_args args = {.exit_signal = SIGCHLD};
	char c = 0;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	if (cgroup_clone_fd(g) >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)cgroup_clone_fd(g);
	}
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		fail_msg("clone3: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		if (cgroup_join(fds, n) < 0 || write(ready[1], &c, 1) != 1 ||
		    read(go[0], &c, 1) != 1)
			_exit(99);
		work();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	if (n == 0 && cgroup_clone_fd(g) < 0 && cgroup_attach(g, pid, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(write(go[1], &c, 1), 1);
	close(ready[0]);
	close(go[0]);
	close(go[1]);
	return pid;
}

static struct cgroup *create(const struct cgroup_limits *limits)
{
	struct pale_err err;
	struct cgroup *g;
	char id[40];

	snprintf(id, sizeof(id), "test-%d-%d", (int)getpid(), counter++);
	if (cgroup_create(&host, id, limits, &g, &err) < 0)
		fail_msg("%s", err.message);
	return g;
}

static void destroy(struct cgroup *g)
{
	struct pale_err err;

	if (cgroup_kill(g, 5000, &err) < 0 || cgroup_destroy(g, &err) < 0)
		fail_msg("%s", err.message);
}

static struct cgroup_usage usage(struct cgroup *g)
{
	struct pale_err err;
	struct cgroup_usage u;

	if (cgroup_usage(g, &u, &err) < 0)
		fail_msg("%s", err.message);
	return u;
}

static void nothing(void)
{
}

static void eat_memory(void)
{
	for (;;) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			_exit(3);
		memset(p, 1, 1 << 20);
	}
}

static void eat_shared_memory(void)
{
	int fd = memfd_create("eat", 0);
	static char block[1 << 16];

	for (int i = 0; i < 4096; i++) {
		if (write(fd, block, sizeof(block)) < 0)
			_exit(3);
	}
}

static void eat_64m(void)
{
	char *p = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	_exit(p == MAP_FAILED ? 3 : 0);
}

static void fork_20(void)
{
	int made = 0;

	for (int i = 0; i < 20; i++) {
		pid_t p = fork();

		if (p == 0) {
			pause();
			_exit(0);
		}
		made += p > 0;
	}
	kill(0, 0);
	_exit(made);
}

static void fork_for_ever(void)
{
	for (;;)
		fork();
}

static void spin(void)
{
	uint64_t end = clock_mono_us() + 400000;

	while (clock_mono_us() < end)
		;
}

static int wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void memory(void (*work)(void), bool must_die)
{
	struct cgroup *g = create(&(struct cgroup_limits){.memory_bytes = 32 << 20});
	short mask;
	int fd = cgroup_event_fd(g, &mask);
	pid_t pid = start(g, work);
	struct pollfd pfd = {.fd = fd, .events = mask};

	assert_true(fd >= 0);
	if (must_die)
		assert_int_equal(poll(&pfd, 1, 5000), 1);
	int status = wait_for(pid);

	cgroup_drain(g);
	assert_int_equal(WIFSIGNALED(status), must_die);
	struct cgroup_usage u = usage(g);

	assert_int_equal(u.oom_kills > 0, must_die);
	assert_true(u.memory_peak_bytes <= 32 << 20);
	assert_true(u.memory_peak_bytes >= (must_die ? 31 << 20 : 1));
	destroy(g);
}

static void test_memory(void **state)
{
	(void)state;
	memory(eat_memory, true);
	memory(eat_shared_memory, true);
	memory(nothing, false);
}

/* With the limit out of the way the same program gets through: the test can fail. */
static void test_memory_without(void **state)
{
	(void)state;
	struct cgroup *g = create(&(struct cgroup_limits){.memory_bytes = 128 << 20});

	assert_int_equal(wait_for(start(g, eat_64m)), 0);
	assert_int_equal(usage(g).oom_kills, 0);
	destroy(g);
	g = create(&(struct cgroup_limits){.memory_bytes = 32 << 20});
	assert_int_not_equal(wait_for(start(g, eat_64m)), 0);
	destroy(g);
}

static void test_processes(void **state)
{
	(void)state;
	struct cgroup *g = create(&(struct cgroup_limits){.processes = 8});
	int status = wait_for(start(g, fork_20));

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	struct cgroup_usage u = usage(g);

	assert_true(u.processes_refused >= 1);
	if (u.processes_peak)
		assert_int_equal(u.processes_peak, 8);
	destroy(g);
	g = create(&(struct cgroup_limits){.processes = 64});
	assert_int_equal(WEXITSTATUS(wait_for(start(g, fork_20))), 20);
	assert_int_equal(usage(g).processes_refused, 0);
	destroy(g);
}

static void test_fork_bomb_is_killed(void **state)
{
	(void)state;
	struct cgroup *g = create(&(struct cgroup_limits){.processes = 200});
	pid_t pid = start(g, fork_for_ever);

	poll(NULL, 0, 50);
	uint64_t t = clock_mono_us();

	destroy(g);
	t = clock_mono_us() - t;
	assert_true(WIFSIGNALED(wait_for(pid)));
	print_message("# a fork bomb of 200 was gone after %llu us\n", (unsigned long long)t);
	assert_true(t < 2000000);
}

static void test_cpu(void **state)
{
	(void)state;
	struct cgroup *g = create(&(struct cgroup_limits){.cpus_milli = 250});

	wait_for(start(g, spin));
	struct cgroup_usage u = usage(g);

	if (host.cputime) {
		assert_true(u.cpu_us > 50000);
		assert_true(u.cpu_us < 250000);
	}
	assert_true(u.throttled_us > 100000);
	destroy(g);
	g = create(&(struct cgroup_limits){0});
	wait_for(start(g, spin));
	if (host.cputime)
		assert_true(usage(g).cpu_us > 100000);
	destroy(g);
}

static void test_recover(void **state)
{
	(void)state;
	struct pale_err err;
	struct cgroup *g =
		create(&(struct cgroup_limits){.memory_bytes = 32 << 20, .processes = 8});
	pid_t pid = start(g, (void (*)(void))pause);
	char id[40];

	snprintf(id, sizeof(id), "test-%d-%d", (int)getpid(), counter - 1);
	if (cgroup_recover(&host, id, &err) < 0)
		fail_msg("%s", err.message);
	assert_true(WIFSIGNALED(wait_for(pid)));
	/* Its groups are gone: destroying says nothing of it, and a second recovery finds none. */
	assert_int_equal(cgroup_destroy(g, &err), 0);
	assert_int_equal(cgroup_recover(&host, id, &err), 0);
}

static void test_wrong(void **state)
{
	(void)state;
	struct pale_err err;
	struct cgroup *g;

	assert_int_equal(cgroup_create(&host, "../x", &(struct cgroup_limits){0}, &g, &err),
			 -PALE_E_USAGE);
	assert_int_equal(cgroup_create(&host, "", &(struct cgroup_limits){0}, &g, &err),
			 -PALE_E_USAGE);
	struct cgroup_host none = host;

	none.pids = false;
	assert_int_equal(
		cgroup_create(&none, "x", &(struct cgroup_limits){.processes = 1}, &g, &err),
		-PALE_E_HOST);
}

/* A figure for the log, not a limit: a shared machine is no place for one. */
static void test_cost(void **state)
{
	(void)state;
	enum { ROUNDS = 30 };
	uint64_t part[5] = {0}, t;

	for (int i = 0; i < ROUNDS; i++) {
		t = clock_mono_us();
		cgroup_probe(&(struct cgroup_host){0});
		part[0] += clock_mono_us() - t;
		t = clock_mono_us();
		struct cgroup *g = create(&(struct cgroup_limits){512 << 20, 64, 1000});

		part[1] += clock_mono_us() - t;
		wait_for(start(g, nothing));
		t = clock_mono_us();
		usage(g);
		part[2] += clock_mono_us() - t;
		t = clock_mono_us();
		(void)!cgroup_kill(g, 1000, NULL);
		part[3] += clock_mono_us() - t;
		t = clock_mono_us();
		(void)!cgroup_destroy(g, NULL);
		part[4] += clock_mono_us() - t;
	}
	print_message("# probe %d, create %d, usage %d, kill %d, destroy %d us\n",
		      (int)part[0] / ROUNDS, (int)part[1] / ROUNDS, (int)part[2] / ROUNDS,
		      (int)part[3] / ROUNDS, (int)part[4] / ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),	  cmocka_unit_test(test_memory_without),
		cmocka_unit_test(test_processes), cmocka_unit_test(test_fork_bomb_is_killed),
		cmocka_unit_test(test_cpu),	  cmocka_unit_test(test_recover),
		cmocka_unit_test(test_wrong),	  cmocka_unit_test(test_cost),
	};
	const char *must = getenv("PALE_MUST_WORK");

	cgroup_probe(&host);
	if (!host.memory || !host.pids || !host.cpu) {
		printf("1..1\n%s 1 control groups of this host%s %s\n",
		       must && strstr(must, "cgroup") ? "not ok" : "ok",
		       must && strstr(must, "cgroup") ? "" : " # SKIP", host.why);
		return must && strstr(must, "cgroup");
	}
	printf("# kind %d base %s\n", (int)host.kind, host.base);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
