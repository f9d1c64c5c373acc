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
#include <time.h>
#include <linux/sched.h>

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/clock.h"
#include "confine/cgroup_impl.h"

static struct cgroup_host host;
static int counter;

/* A box in small: a first process, which joins, starts the work, reports how that ended and stays.
 */
struct box {
	struct cgroup *g;
	pid_t init;
	int report;
};

static _Noreturn void init(const int *fds, size_t n, int report, int go, void (*work)(void))
{
	int status = 0;
	char c = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (cgroup_join(fds, n) < 0 || write(report, &c, 1) != 1 || read(go, &c, 1) != 1)
		_exit(99);
	pid_t worker = fork();

	if (worker == 0) {
		work();
		_exit(0);
	}
	waitpid(worker, &status, 0);
	if (write(report, &status, sizeof(status)) != sizeof(status))
		_exit(98);
	for (;;)
		pause();
}

static struct box start(struct cgroup *g, void (*work)(void))
{
	struct pale_err err;
	int fds[CGROUP_JOIN_MAX], report[2], go[2];
	size_t n = cgroup_join_fds(g, fds);
	struct clone_args args = {.exit_signal = SIGCHLD};
	char c = 0;

	assert_int_equal(pipe2(report, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	if (cgroup_clone_fd(g) >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)cgroup_clone_fd(g);
	}
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		fail_msg("clone3: %s", strerror(errno));
	if (pid == 0) {
		close(report[0]);
		close(go[1]);
		init(fds, n, report[1], go[0], work);
	}
	close(report[1]);
	assert_int_equal(read(report[0], &c, 1), 1);
	if (n == 0 && cgroup_clone_fd(g) < 0 && cgroup_attach(g, pid, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(write(go[1], &c, 1), 1);
	close(go[0]);
	close(go[1]);
	return (struct box){g, pid, report[0]};
}

/* How the work ended; where all of the box was killed at once, how its first process did. */
static int wait_for(struct box *b)
{
	int status;

	if (read(b->report, &status, sizeof(status)) != sizeof(status)) {
		assert_int_equal(waitpid(b->init, &status, 0), b->init);
		b->init = 0;
	}
	return status;
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

static void destroy(struct box *b)
{
	struct pale_err err;

	if (cgroup_kill(b->g, 5000, &err) < 0)
		fail_msg("%s", err.message);
	if (b->init)
		waitpid(b->init, NULL, 0);
	close(b->report);
	if (cgroup_destroy(b->g, &err) < 0)
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
	_exit(made);
}

static void fork_for_ever(void)
{
	/* Not for ever if this test fails. */
	for (uint64_t end = clock_mono_us() + 30000000; clock_mono_us() < end;)
		fork();
	_exit(0);
}

/* By its own time, so that a busy machine makes no difference to how much there is to do. */
static void spin(void)
{
	struct timespec used;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (used.tv_sec == 0 && used.tv_nsec < 150000000);
}

static void memory(void (*work)(void), bool must_die)
{
	struct cgroup *g = create(&(struct cgroup_limits){.memory_bytes = 32 << 20});
	short mask;
	int fd = cgroup_event_fd(g, &mask);
	struct box b = start(g, work);
	struct pollfd pfd = {.fd = fd, .events = mask};

	assert_true(fd >= 0);
	if (must_die)
		assert_int_equal(poll(&pfd, 1, 5000), 1);
	cgroup_drain(g);
	int status = wait_for(&b);

	assert_int_equal(WIFSIGNALED(status), must_die);
	struct cgroup_usage u = usage(g);

	assert_int_equal(u.oom_kills > 0, must_die);
	assert_true(u.memory_peak_bytes <= 32 << 20);
	assert_true(u.memory_peak_bytes >= (must_die ? 31 << 20 : 1));
	/* Once drained it is quiet. */
	poll(NULL, 0, 20);
	cgroup_drain(g);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	destroy(&b);
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
	struct box b = start(create(&(struct cgroup_limits){.memory_bytes = 128 << 20}), eat_64m);

	assert_int_equal(wait_for(&b), 0);
	assert_int_equal(usage(b.g).oom_kills, 0);
	destroy(&b);
	b = start(create(&(struct cgroup_limits){.memory_bytes = 32 << 20}), eat_64m);
	assert_int_not_equal(wait_for(&b), 0);
	destroy(&b);
}

static void test_processes(void **state)
{
	(void)state;
	struct box b = start(create(&(struct cgroup_limits){.processes = 8}), fork_20);
	int status = wait_for(&b);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 6); /* and the worker and the first */
	struct cgroup_usage u = usage(b.g);

	assert_true(u.processes_refused >= 1);
	if (u.processes_peak)
		assert_int_equal(u.processes_peak, 8);
	destroy(&b);
	b = start(create(&(struct cgroup_limits){.processes = 64}), fork_20);
	assert_int_equal(WEXITSTATUS(wait_for(&b)), 20);
	assert_int_equal(usage(b.g).processes_refused, 0);
	destroy(&b);
}

static void test_fork_bomb_is_killed(void **state)
{
	(void)state;
	/* With a share of the processors, since without it there is no group of the cpu controller
	 * and the killer is one among 100 that are ready to run. */
	struct box b = start(create(&(struct cgroup_limits){.processes = 100, .cpus_milli = 1000}),
			     fork_for_ever);

	poll(NULL, 0, 50);
	uint64_t t = clock_mono_us();

	destroy(&b);
	t = clock_mono_us() - t;
	print_message("# a fork bomb of 100 was gone after %llu us\n", (unsigned long long)t);
	/* Long before it would have ended by itself, on a busy machine too. */
	assert_true(t < 10000000);
}

static void test_cpu(void **state)
{
	(void)state;
	uint64_t t = clock_mono_us();
	struct box b = start(create(&(struct cgroup_limits){.cpus_milli = 250}), spin);

	wait_for(&b);
	t = clock_mono_us() - t;
	if (host.cputime)
		assert_true(usage(b.g).cpu_us >= 150000);
	/* 150 ms at a quarter of a processor, less what the first period may be ahead. */
	assert_true(t > 400000);
	destroy(&b);
	/* With a whole one it is not held up. Where the machine itself stood still for a while,
	 * that counts as used, and has to be waited for: so, once of five times. */
	uint64_t throttled_us = UINT64_MAX;

	for (int i = 0; i < 5 && throttled_us > 100000; i++) {
		b = start(create(&(struct cgroup_limits){.cpus_milli = 1000}), spin);
		wait_for(&b);
		throttled_us = cgroup_throttled_us(b.g);
		if (host.cputime)
			assert_true(usage(b.g).cpu_us >= 150000);
		destroy(&b);
	}
	assert_true(throttled_us <= 100000);
}

/* Its weight is set while something is in it, as the kernel then says. */
static void test_weight(void **state)
{
	const bool v1 = host.kind == CGROUP_V1;
	struct box b = start(create(&(struct cgroup_limits){.cpus_milli = 1000}), spin);
	pid_t threads[4] = {0};
	bool found = false;
	char path[CGROUP_PATH + 16], text[32] = "";
	size_t n;

	(void)state;
	snprintf(path, sizeof(path), "%s/%s",
		 b.g->group[v1 && b.g->of[CGROUP_CPU] >= 0 ? b.g->of[CGROUP_CPU] : 0].path,
		 v1 ? "cpu.shares" : "cpu.weight");
	for (int low = 1; low >= 0; low--) {
		_cleanup_close_ int fd = -1;

		cgroup_weigh(b.g, low);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
		assert_int_equal(atoi(text), v1 ? (low ? 128 : 1024) : (low ? 12 : 100));
	}
	n = cgroup_threads(b.g, threads, ARRAY_SIZE(threads));
	assert_true(n >= 1 && n <= ARRAY_SIZE(threads));
	for (size_t i = 0; i < n; i++)
		found |= threads[i] == b.init;
	assert_true(found);
	wait_for(&b);
	destroy(&b);
}

static void test_recover(void **state)
{
	(void)state;
	struct pale_err err;
	struct box b =
		start(create(&(struct cgroup_limits){.memory_bytes = 32 << 20, .processes = 8}),
		      (void (*)(void))pause);
	char id[40];
	int status;

	snprintf(id, sizeof(id), "test-%d-%d", (int)getpid(), counter - 1);
	if (cgroup_recover(&host, id, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(waitpid(b.init, &status, 0), b.init);
	assert_true(WIFSIGNALED(status));
	/* Its groups are gone: destroying says nothing of it, and a second recovery finds none. */
	close(b.report);
	assert_int_equal(cgroup_destroy(b.g, &err), 0);
	assert_int_equal(cgroup_recover(&host, id, &err), 0);
}

static void count(void)
{
	for (;;)
		;
}

static bool stands(struct cgroup *g)
{
	for (int i = 0; i < 2000 && !cgroup_stands(g); i++)
		poll(NULL, 0, 1);
	return cgroup_stands(g);
}

static uint64_t used_us(struct cgroup *g)
{
	return host.cputime ? usage(g).cpu_us : 0;
}

/* A box that is frozen uses nothing, goes on, and dies frozen: here, and of a recovery. */
static void test_freeze(void **state)
{
	(void)state;
	struct pale_err err;
	const struct cgroup_limits limits = {.cpus_milli = 1000, .freezer = true};
	int status;

	if (!host.freeze) {
		print_message("# there is no freezer\n");
		assert_false(getenv("PALE_TEST_CGROUP_KIND") || geteuid() == 0);
		skip();
	}
	/* Without it being asked for there is none. */
	struct cgroup *g = create(&(struct cgroup_limits){.cpus_milli = 1000});

	assert_false(cgroup_can_freeze(g));
	assert_int_equal(cgroup_destroy(g, &err), 0);
	for (int how = 0; how < 3; how++) {
		struct box b = start(create(&limits), count);
		char id[40];

		snprintf(id, sizeof(id), "test-%d-%d", (int)getpid(), counter - 1);
		assert_true(cgroup_can_freeze(b.g));
		poll(NULL, 0, 20);
		for (int i = 0; i < 10; i++) {
			uint64_t t = clock_mono_us(), used;

			assert_int_equal(cgroup_freeze(b.g, true, &err), 0);
			assert_true(stands(b.g));
			t = clock_mono_us() - t;
			if (how == 0)
				print_message("# frozen after %llu us\n", (unsigned long long)t);
			/* What it used until then may be counted a little later. */
			poll(NULL, 0, 10);
			used = used_us(b.g);
			poll(NULL, 0, 30);
			assert_true(used_us(b.g) < used + 5000);
			assert_int_equal(cgroup_freeze(b.g, false, &err), 0);
			assert_false(cgroup_stands(b.g));
			for (int k = 0; k < 500 && used_us(b.g) < used + 5000; k++)
				poll(NULL, 0, 10);
			assert_true(!host.cputime || used_us(b.g) >= used + 5000);
		}
		assert_int_equal(cgroup_freeze(b.g, true, &err), 0);
		assert_true(stands(b.g));
		if (how == 0) {
			/* In any case it dies of SIGKILL, but in v1 only when it is let go on. */
			const char *text;
			int fd = cgroup_thaw_fd(b.g, &text);

			kill(b.init, SIGKILL);
			poll(NULL, 0, 50);
			assert_int_equal(waitpid(b.init, &status, WNOHANG), fd < 0 ? b.init : 0);
			assert_int_equal(host.kind == CGROUP_V1, fd >= 0);
			if (fd < 0)
				b.init = 0;
			else
				assert_true(write(fd, text, strlen(text)) > 0);
			close(fd);
			destroy(&b);
		} else if (how == 1) {
			destroy(&b);
		} else {
			if (cgroup_recover(&host, id, &err) < 0)
				fail_msg("%s", err.message);
			assert_int_equal(waitpid(b.init, &status, 0), b.init);
			close(b.report);
			assert_int_equal(cgroup_destroy(b.g, &err), 0);
		}
	}
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
		struct box b = start(g, nothing);

		wait_for(&b);
		t = clock_mono_us();
		usage(g);
		part[2] += clock_mono_us() - t;
		kill(b.init, SIGKILL);
		waitpid(b.init, NULL, 0);
		close(b.report);
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
		cmocka_unit_test(test_freeze),	  cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_cost),	  cmocka_unit_test(test_weight),
	};
	const char *must = getenv("PALE_MUST_WORK"), *kind = getenv("PALE_TEST_CGROUP_KIND");
	const char *why = getenv("PALE_TEST_CGROUP_WHY");

	cgroup_probe(&host);
	printf("# kind %d base %s why %s\n", (int)host.kind, host.base, host.why);
	/* The test machine (tests/vm) says what must be found where. */
	if (kind && host.kind != (enum cgroup_kind)(kind[0] - '0')) {
		printf("1..1\nnot ok 1 - kind %s was expected\n", kind);
		return 1;
	}
	if (why) {
		bool told = strstr(host.why, why);

		printf("1..1\n%s 1 - the reason names %s\n", told ? "ok" : "not ok", why);
		return !told;
	}
	if (!host.memory || !host.pids || !host.cpu) {
		printf("1..1\n%s 1 control groups of this host%s %s\n",
		       must && strstr(must, "cgroup") ? "not ok" : "ok",
		       must && strstr(must, "cgroup") ? "" : " # SKIP", host.why);
		return must && strstr(must, "cgroup");
	}
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
