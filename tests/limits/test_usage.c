/* The supervisor's own accounting and the rlimits: what processes of a small box use is seen,
 * however they hide, and sampling costs little. */
#include "supervise/usage.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/clock.h"
#include "confine/rlimits.h"

#define MIB (1u << 20)

static void burn(long ms)
{
	struct timespec used;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < ms);
}

static void fill(size_t mib, int flags)
{
	char *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	if (p == MAP_FAILED)
		_exit(3);
	memset(p, 1, mib * MIB);
}

/* A process that adopts orphans, as the first of a pid namespace does, and runs work(). */
static pid_t start(void (*work)(void), int *ret_ready)
{
	int ready[2];

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		close(ready[0]);
		/* What the host's shared memory was before the box is noted meanwhile. */
		nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
		work();
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	*ret_ready = ready[0];
	return pid;
}

/* The tree dies from the top: children have a parent-death signal each, and come to us. The next
 * test must not see their memory go. */
static void end_all(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static struct usage_now measure(void (*work)(void), const struct usage_budget *budget, unsigned ms)
{
	struct usage_now now = {0};
	struct pale_err err;
	struct usage *u;
	int ready;
	pid_t pid = start(work, &ready);
	uint64_t end = clock_mono_us() + (uint64_t)ms * 1000;

	if (usage_new(pid, 0, budget, &u, &err) < 0)
		fail_msg("%s", err.message);
	struct pollfd done = {.fd = ready, .events = POLLIN};

	/* For so long, and until the work is set up, however long a busy machine takes. */
	do {
		if (usage_sample(u, &now, &err) < 0)
			fail_msg("%s", err.message);
	} while (poll(&done, clock_mono_us() > end, 5) == 0);
	if (usage_sample(u, &now, &err) < 0)
		fail_msg("%s", err.message);
	usage_free(u);
	close(ready);
	end_all(pid);
	return now;
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void work_cpu_waited(void)
{
	for (int i = 0; i < 5; i++) {
		if (child() == 0) {
			burn(40);
			_exit(0);
		}
		wait(NULL);
	}
}

static void work_cpu_ignored(void)
{
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 2; i++) {
		if (child() == 0) {
			burn(150);
			/* To be seen once more, also by a sampler that has to wait for its turn. */
			nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
			_exit(0);
		}
		/* Nothing is told; this returns when it has ended. */
		(void)!wait(NULL);
	}
}

static void test_cpu(void **state)
{
	const struct usage_budget budget = {.cpu_us = 10000000, .cpus = 2};
	(void)state;
	struct usage_now now = measure(work_cpu_waited, &budget, 50);

	assert_true(now.cpu_us >= 170000);
	assert_true(now.cpu_us < 400000);
	assert_false(now.cpu_over);
	/* One after the other, and nobody is told of their ends: the kernel drops their time, what
	 * was seen last is kept. */
	now = measure(work_cpu_ignored, &budget, 700);
	assert_true(now.cpu_us >= 250000);
}

static void daemonize_and_stay(void)
{
	pid_t first = getpid(), pid;
	int filled[2];
	char c;

	if (pipe(filled) < 0)
		_exit(3);
	pid = fork();
	if (pid == 0) {
		setsid();
		if (fork())
			_exit(0);
		while (getppid() != first)
			sched_yield();
		/* What was asked for before goes with the parent that there was then. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fill(16, MAP_PRIVATE);
		(void)!write(filled[1], "", 1);
		close_range(3, ~0u, 0);
		for (;;)
			pause();
	}
	waitpid(pid, NULL, 0);
	(void)!read(filled[0], &c, 1);
	close(filled[0]);
	close(filled[1]);
}

static void test_daemons_are_seen(void **state)
{
	const struct usage_budget budget = {.memory_bytes = 64 * MIB, .processes = 1, .cpus = 1};
	(void)state;
	struct usage_now now = measure(daemonize_and_stay, &budget, 150);

	assert_int_equal(now.processes, 2);
	assert_true(now.processes_over);
	assert_true(now.memory_bytes >= 15 * MIB);
	assert_true(now.memory_bytes < 40 * MIB);
}

static void work_shared_with_children(void)
{
	fill(24, MAP_PRIVATE);
	for (int i = 0; i < 4; i++) {
		if (child() == 0) {
			for (;;)
				pause();
		}
	}
}

static void work_many(void)
{
	int filled[2];
	char c;

	if (pipe(filled) < 0)
		_exit(3);
	for (int i = 0; i < 4; i++) {
		if (child() == 0) {
			fill(16, MAP_PRIVATE);
			(void)!write(filled[1], "", 1);
			for (;;)
				pause();
		}
	}
	for (int i = 0; i < 4; i++)
		(void)!read(filled[0], &c, 1);
}

static void work_shared(void)
{
	fill(48, MAP_SHARED);
	work_shared_with_children();
}

static void work_memfd(void)
{
	static char block[MIB];
	int fd = memfd_create("x", 0);

	memset(block, 1, sizeof(block));
	for (int i = 0; i < 48; i++)
		(void)!write(fd, block, sizeof(block));
}

/* Shared memory without a file is bounded by how much that of the whole host grew: what others give
 * back in the same moment hides as much of it. They do not each time. */
static bool seen_over(void (*work)(void), const struct usage_budget *budget)
{
	bool over = false;

	for (int i = 0; i < 5 && !over; i++)
		over = measure(work, budget, 50).memory_over;
	return over;
}

static void test_memory(void **state)
{
	const struct usage_budget budget = {.memory_bytes = 40 * MIB, .cpus = 1};
	(void)state;
	/* The plain sum is 120 MiB; the pages are there once. */
	assert_false(measure(work_shared_with_children, &budget, 50).memory_over);
	struct usage_now now = measure(work_many, &budget, 250);

	assert_true(now.memory_over);
	assert_true(now.memory_peak_bytes >= 60 * MIB);
	assert_true(seen_over(work_shared, &budget));
	assert_true(seen_over(work_memfd, &budget));
}

static void work_sleepers(void)
{
	for (int i = 0; i < 60; i++) {
		if (child() == 0) {
			for (;;)
				pause();
		}
	}
}

static void test_cost(void **state)
{
	const struct usage_budget budget = {
		.memory_bytes = 512 * MIB, .cpu_us = 30000000, .cpus = 1};
	(void)state;
	struct usage_now now;
	struct pale_err err;
	struct usage *u;
	struct timespec a, b;
	char c;
	int ready;
	pid_t pid = start(work_sleepers, &ready);

	assert_int_equal(read(ready, &c, 1), 1);
	assert_int_equal(usage_new(pid, 0, &budget, &u, &err), 0);
	assert_int_equal(usage_sample(u, &now, &err), 0);
	assert_int_equal(now.processes, 61);
	long us = 0, ms = 0;

	/* A machine that does something else at that moment makes a sample dear: it is to be cheap
	 * once in three times. */
	for (int attempt = 0; attempt == 0 || (attempt < 3 && us >= ms * 1000 / 20); attempt++) {
		us = ms = 0;
		for (int i = 0; i < 20; i++) {
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
			assert_int_equal(usage_sample(u, &now, &err), 0);
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
			us += (b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000;
			ms += now.next_sample_ms;
		}
	}
	print_message("# 61 processes: %ld us a sample, the next in %ld ms\n", us / 20, ms / 20);
	/* A fiftieth of a processor; each sets the distance to the next by its own cost. */
	assert_true(us < ms * 1000 / 20);
	end_all(pid);
	assert_int_equal(usage_sample(u, &now, &err), -PALE_E_NOTFOUND);
	usage_free(u);
	close(ready);
}

static void on_signal(int number)
{
	(void)number;
	fill(30, MAP_PRIVATE);
	if (child() == 0)
		pause();
}

static pid_t *sleeper_page; /* shared with it */

static void work_asleep(void)
{
	pid_t pid = child();

	if (pid) {
		*sleeper_page = pid;
	} else {
		signal(SIGUSR1, on_signal);
		for (;;)
			pause();
	}
}

static uint64_t clock_cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* A box in which nothing runs costs less than one in which something does; what wakes up is seen,
 * and what that starts. */
static void test_asleep(void **state)
{
	const struct usage_budget budget = {.memory_bytes = 1ULL << 30, .cpus = 1};
	struct usage_now now = {0};
	uint64_t begun, first, asleep, until;
	struct pale_err err;
	struct usage *u;
	int ready;
	char byte;
	pid_t pid, sleeper;

	(void)state;
	sleeper_page = mmap(NULL, sizeof(*sleeper_page), PROT_READ | PROT_WRITE,
			    MAP_ANONYMOUS | MAP_SHARED, -1, 0);
	assert_ptr_not_equal(sleeper_page, MAP_FAILED);
	pid = start(work_asleep, &ready);
	assert_int_equal(read(ready, &byte, 1), 1);
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	assert_int_equal(usage_new(pid, 0, &budget, &u, &err), 0);
	begun = clock_cpu_us();
	assert_int_equal(usage_sample(u, &now, &err), 0);
	first = clock_cpu_us() - begun;
	assert_int_equal(now.processes, 2);
	sleeper = *sleeper_page;
	begun = clock_cpu_us();
	for (int i = 0; i < 1000; i++)
		assert_int_equal(usage_sample(u, &now, &err), 0);
	asleep = (clock_cpu_us() - begun) / 1000;
	print_message("# a sample: %d us, of one that sleeps %d us\n", (int)first, (int)asleep);
	assert_true(asleep < first);
	assert_true(now.memory_bytes < 20 * MIB);
	assert_int_equal(kill(sleeper, SIGUSR1), 0);
	until = clock_mono_us() + 10000000;
	while ((now.memory_bytes < 30 * MIB || now.processes < 3) && clock_mono_us() < until) {
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		assert_int_equal(usage_sample(u, &now, &err), 0);
	}
	assert_true(now.memory_bytes >= 30 * MIB);
	assert_int_equal(now.processes, 3);
	usage_free(u);
	close(ready);
	end_all(pid);
	munmap(sleeper_page, sizeof(*sleeper_page));
}

static void test_intervals(void **state)
{
	const struct usage_budget memory = {.memory_bytes = 1u << 30, .cpus = 1};
	const struct usage_budget cpu = {.cpu_us = 5000000, .cpus = 2};
	const struct usage_budget little = {.cpu_us = 40000, .cpus = 2};
	(void)state;
	struct pale_err err;
	struct usage *u;

	assert_int_equal(usage_new(getpid(), 0, &memory, &u, &err), 0);
	assert_int_equal(usage_first_ms(u), 50);
	usage_free(u);
	assert_int_equal(usage_new(getpid(), 0, &cpu, &u, &err), 0);
	assert_int_equal(usage_first_ms(u), 1000);
	usage_free(u);
	assert_int_equal(usage_new(getpid(), 0, &little, &u, &err), 0);
	assert_int_equal(usage_first_ms(u), 20);
	usage_free(u);
}

static uint64_t planned(const struct rlimits *r, int resource)
{
	for (size_t i = 0; i < r->n; i++) {
		if (r->row[i].resource == resource)
			return r->row[i].value;
	}
	return UINT64_MAX;
}

static void test_rlimits(void **state)
{
	const struct policy_limits limits = {.cpu_ms = 1500,
					     .memory_bytes = 64 * MIB,
					     .processes = 10,
					     .open_files = 100,
					     .file_size_bytes = 5 * MIB};
	(void)state;
	struct rlimits r;
	struct pale_err err;
	int status;

	assert_int_equal(rlimits_plan(&limits,
				      &(struct rlimits_mode){.memory = true, .processes_extra = 1},
				      &r, &err),
			 0);
	assert_int_equal(planned(&r, RLIMIT_NPROC), 11);
	assert_int_equal(planned(&r, RLIMIT_DATA), 128 * MIB);
	assert_int_equal(planned(&r, RLIMIT_CPU), 3);
	assert_int_equal(planned(&r, RLIMIT_CORE), 1);
	assert_int_equal(planned(&r, RLIMIT_RTPRIO), 0);
	assert_int_equal(planned(&r, RLIMIT_NICE), 0);
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit l;

		if (rlimits_apply(&r, &err) < 0 || getrlimit(RLIMIT_NOFILE, &l) < 0)
			_exit(1);
		if (l.rlim_cur != 100 || l.rlim_max != 100)
			_exit(2);
		if (mmap(NULL, 200 * MIB, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1,
			 0) != MAP_FAILED)
			_exit(3);
		/* Address space that is only reserved is not memory. */
		if (mmap(NULL, (size_t)8 << 30, PROT_NONE,
			 MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE, -1, 0) == MAP_FAILED)
			_exit(4);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(rlimits_plan(&limits, &(struct rlimits_mode){0}, &r, &err), 0);
	assert_int_equal(planned(&r, RLIMIT_DATA), UINT64_MAX);
}

static void test_rlimits_of_the_host(void **state)
{
	const struct policy_limits limits = {.open_files = 4000, .processes = 10};
	(void)state;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		const struct rlimit low = {64, 64};
		struct rlimits r;
		struct pale_err err;

		if (setrlimit(RLIMIT_NOFILE, &low) < 0 || (geteuid() == 0 && seteuid(65534) < 0))
			_exit(1);
		if (rlimits_plan(&limits, &(struct rlimits_mode){0}, &r, &err) != -PALE_E_HOST)
			_exit(2);
		_exit(strstr(err.message, "limits.conf") && strstr(err.message, "64") ? 0 : 3);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_true(rlimits_nproc_per_box());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu),	cmocka_unit_test(test_daemons_are_seen),
		cmocka_unit_test(test_memory),	cmocka_unit_test(test_cost),
		cmocka_unit_test(test_asleep),	cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_rlimits), cmocka_unit_test(test_rlimits_of_the_host),
	};

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
