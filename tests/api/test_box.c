/* The library from a program with threads and an event loop of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <pale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_TEXT 262144

static char state_dir[64];
static const char *self;

struct seen {
	char out[MAX_TEXT], err[1024], events[MAX_TEXT];
	size_t nout, nerr, nevents;
};

static void on_output(void *arg, enum pale_stream stream, const char *data, size_t len)
{
	struct seen *s = arg;
	char *to = stream == PALE_STDOUT ? s->out : s->err;
	size_t *n = stream == PALE_STDOUT ? &s->nout : &s->nerr,
	       max = stream == PALE_STDOUT ? MAX_TEXT : 1024;

	if (*n + len < max)
		memcpy(to + *n, data, len);
	*n += len;
}

static void on_event(void *arg, const char *json)
{
	struct seen *s = arg;
	size_t len = strlen(json);

	if (s->nevents + len + 1 < MAX_TEXT)
		memcpy(s->events + s->nevents, json, len);
	s->nevents += len;
}

static struct pale_policy *policy_with(const char *key, const char *value)
{
	struct pale_policy *p = NULL;
	struct pale_err err = {0};

	assert_int_equal(pale_policy_new(&p, &err), 0);
	if (key && pale_policy_set(p, key, value, &err) < 0)
		fail_msg("%s", err.message);
	return p;
}

static struct pale_box *start(const char *script, const struct pale_policy *policy,
			      struct seen *seen)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	struct pale_command command = {.size = sizeof(command), .argv = argv};
	struct pale_run_options options = {.size = sizeof(options),
					   .on_output = seen ? on_output : NULL,
					   .on_event = seen ? on_event : NULL,
					   .arg = seen};
	struct pale_policy *own = policy ? NULL : policy_with(NULL, NULL);
	struct pale_box *box = NULL;
	struct pale_err err = {0};

	if (pale_box_start(policy ? policy : own, &command, &options, &box, &err) < 0)
		fail_msg("%s", err.message);
	pale_policy_free(own);
	return box;
}

static struct pale_result *finish(struct pale_box *box)
{
	struct pale_result *result = NULL;
	struct pale_err err = {0};

	if (pale_box_wait(box, &result, &err) < 0)
		fail_msg("%s", err.message);
	pale_box_free(box);
	return result;
}

/* Processes anywhere whose command line has this word. */
static unsigned count_processes(const char *word)
{
	DIR *proc = opendir("/proc");
	unsigned n = 0;

	for (struct dirent *e; proc && (e = readdir(proc));) {
		char path[300], line[4096];
		ssize_t len;
		int fd;

		snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
		if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
		    (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
			continue;
		len = read(fd, line, sizeof(line));
		close(fd);
		n += len > 0 && memmem(line, (size_t)len, word, strlen(word));
	}
	if (proc)
		closedir(proc);
	return n;
}

/* Whether there is such a process, waited for. */
static bool becomes(const char *word, bool there)
{
	for (int i = 0; i < 500; i++) {
		if ((count_processes(word) > 0) == there)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return false;
}

static unsigned count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* The pale-box of this process that was started last. */
static pid_t last_child(void)
{
	char path[64], line[512] = "";
	pid_t pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f))
		for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
			pid = (pid_t)strtol(word, NULL, 10);
	if (f)
		fclose(f);
	return pid;
}

static void test_run_keeps_output(void **state)
{
	const char *argv[] = {"sh", "-c", "echo out; echo err >&2; exit 7", NULL};
	struct pale_command command = {.size = sizeof(command), .argv = argv};
	struct pale_policy *policy = policy_with(NULL, NULL);
	struct pale_result *r = NULL;
	struct pale_err err = {0};
	size_t len;

	(void)state;
	if (pale_run(policy, &command, NULL, &r, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(pale_result_exit_status(r), 7);
	assert_string_equal(pale_result_outcome(r), "exit");
	assert_string_equal(pale_result_output(r, PALE_STDOUT, &len), "out\n");
	assert_int_equal(len, 4);
	assert_string_equal(pale_result_output(r, PALE_STDERR, NULL), "err\n");
	assert_non_null(strstr(pale_result_json(r), pale_result_audit_id(r)));
	assert_int_equal(pale_result_count(r, PALE_COUNT_LIMITS), 0);
	pale_result_free(r);
	pale_policy_free(policy);
}

static void test_callbacks(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));
	char *script = malloc(100001);
	struct pale_result *r;
	unsigned fds = count_fds();

	(void)state;
	/* Longer than a packet: the event of the start has it whole. */
	memset(script, ' ', 100000);
	memcpy(script, "echo one; echo two >&2", 22);
	script[100000] = '\0';
	r = finish(start(script, NULL, s));
	assert_int_equal(pale_result_exit_status(r), 0);
	assert_string_equal(s->out, "one\n");
	assert_string_equal(s->err, "two\n");
	assert_non_null(strstr(s->events, "\"event\":\"box.start\""));
	assert_non_null(strstr(s->events, "\"policy_name\":\"compute\""));
	assert_non_null(strstr(s->events, "\"event\":\"box.end\""));
	assert_true(s->nevents > 100000);
	assert_null(pale_result_output(r, PALE_STDOUT, NULL));
	pale_result_free(r);
	free(script);
	free(s);
	assert_int_equal(count_fds(), fds);
}

/* One loop, several boxes; one is destroyed in the middle. */
static void test_several_at_once(void **state)
{
	enum { N = 5 };
	static const char *const scripts[N] = {"sleep 0.2; exit 1", "exit 2", "sleep 918273",
					       "echo x; exit 4", "kill -9 $$"};
	static const int wanted[N] = {1, 2, 137, 4, 137};
	struct pale_box *boxes[N];
	unsigned open_boxes = N;
	bool done[N] = {false};
	struct pale_err err = {0};

	(void)state;
	for (int i = 0; i < N; i++)
		boxes[i] = start(scripts[i], NULL, NULL);
	assert_true(
		becomes("918273", 3)); /* pid 1 is not the command; sh waits for sleep, or is it */
	while (open_boxes) {
		struct pollfd p[N];

		for (int i = 0; i < N; i++)
			p[i] = (struct pollfd){done[i] ? -1 : pale_box_fd(boxes[i]), POLLIN, 0};
		assert_true(poll(p, N, 20000) > 0);
		for (int i = 0; i < N; i++) {
			int r = p[i].revents ? pale_box_dispatch(boxes[i], &err) : 0;

			if (r < 0)
				fail_msg("%s", err.message);
			if (r == 1) {
				done[i] = true;
				open_boxes--;
			}
		}
		if (open_boxes == 1)
			assert_int_equal(pale_box_destroy(boxes[2], &err), 0);
	}
	for (int i = 0; i < N; i++) {
		struct pale_result *r = finish(boxes[i]);

		assert_int_equal(pale_result_exit_status(r), wanted[i]);
		assert_string_equal(pale_result_outcome(r), i == 2   ? "destroyed"
							    : i == 4 ? "signal"
								     : "exit");
		pale_result_free(r);
	}
	assert_int_equal(count_processes("918273"), 0);
}

static void *run_in_thread(void *arg)
{
	struct seen *s = calloc(1, sizeof(*s));
	char script[64];
	struct pale_result *r;
	intptr_t bad = 0;

	for (int i = 0; s && i < 3; i++) {
		memset(s, 0, sizeof(*s));
		snprintf(script, sizeof(script), "echo %d; exit %d", (int)(intptr_t)arg * 10 + i,
			 i);
		r = finish(start(script, NULL, s));
		bad += pale_result_exit_status(r) != i ||
		       atoi(s->out) != (int)(intptr_t)arg * 10 + i;
		pale_result_free(r);
	}
	free(s);
	return (void *)bad;
}

static void test_threads(void **state)
{
	pthread_t threads[4];
	void *bad;

	(void)state;
	for (intptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_in_thread, (void *)i), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
}

/* Nobody takes the output: the box waits, its supervisor does not. */
static void test_slow_reader(void **state)
{
	struct pale_policy *policy = policy_with("limits.wall", "500ms");
	struct seen *s = calloc(1, sizeof(*s));
	struct pale_box *box = start("echo 564738; exec yes 564738", policy, s);
	struct pale_result *r;

	(void)state;
	nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	assert_int_equal(count_processes("564738"), 0);
	r = finish(box);
	assert_string_equal(pale_result_outcome(r), "wall time");
	assert_int_equal(pale_result_exit_status(r), 124);
	assert_non_null(strstr(pale_result_summary(r), "wall"));
	assert_int_equal(pale_result_count(r, PALE_COUNT_LIMITS), 1);
	pale_result_free(r);
	pale_policy_free(policy);
	free(s);
}

/* Nobody takes the events either: they wait, or are counted, and the run goes on to its end. */
static void test_slow_events(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct pale_box *box =
		start("exec python3 -c 'import socket\n"
		      "for port in range(1, 4000):\n"
		      " with socket.socket() as s: s.connect_ex((\"192.0.2.1\", port))\n"
		      "print(647382)'",
		      NULL, s);
	struct pale_result *r;

	(void)state;
	assert_true(becomes("647382", true));
	assert_true(becomes("647382", false));
	r = finish(box);
	assert_int_equal(pale_result_exit_status(r), 0);
	assert_string_equal(s->out, "647382\n");
	assert_non_null(strstr(s->events, "network.blocked"));
	assert_true(s->nevents < MAX_TEXT);
	assert_non_null(strstr(s->events, "\"event\":\"box.end\""));
	pale_result_free(r);
	free(s);
}

/* A terminal whose other side is the caller: its size is told, and told anew. */
static void test_terminal(void **state)
{
	const char *argv[] = {
		"sh", "-c",
		"trap 'stty size; exit 4' WINCH; test -t 0 && test -t 1 && echo is a tty; "
		"while :; do sleep 0.02; done",
		NULL};
	struct pale_command command = {.size = sizeof(command), .argv = argv, .tty = true};
	struct seen *s = calloc(1, sizeof(*s));
	struct pale_run_options options = {
		.size = sizeof(options), .on_output = on_output, .arg = s};
	struct pale_policy *policy = policy_with(NULL, NULL);
	struct pale_box *box = NULL;
	struct pale_result *r;
	struct pale_err err = {0};

	(void)state;
	if (pale_box_start(policy, &command, &options, &box, &err) < 0)
		fail_msg("%s", err.message);
	while (!s->nout) {
		struct pollfd p = {pale_box_fd(box), POLLIN, 0};

		assert_true(poll(&p, 1, 20000) > 0);
		assert_int_equal(pale_box_dispatch(box, &err), 0);
	}
	assert_int_equal(pale_box_resize(box, 33, 77, &err), 0);
	r = finish(box);
	assert_int_equal(pale_result_exit_status(r), 4);
	assert_string_equal(s->out, "is a tty\r\n33 77\r\n");
	pale_result_free(r);
	pale_policy_free(policy);
	free(s);
}

/* Every function takes NULL for the error. */
static void test_no_error_wanted(void **state)
{
	const char *argv[] = {"no-such-command-here", NULL};
	struct pale_command command = {.size = sizeof(command), .argv = argv};
	struct pale_policy *policy = policy_with(NULL, NULL);
	struct pale_result *r = NULL;
	struct pale_plan *plan = NULL;
	char id[PALE_ID_SIZE];

	(void)state;
	assert_int_equal(pale_run(policy, &command, NULL, &r, NULL), -PALE_E_NOTFOUND);
	assert_int_equal(pale_plan_new(policy, &command, &plan, NULL), -PALE_E_NOTFOUND);
	assert_int_equal(pale_policy_set(policy, "limits.memory", "lots", NULL), -PALE_E_POLICY);
	assert_int_equal(pale_policy_load(policy, "/nonexistent", NULL), -PALE_E_NOTFOUND);
	assert_int_equal(
		pale_policy_load_text(policy, "pale: 1\nlimts: {}\n", 19, "t", NULL, false, NULL),
		-PALE_E_POLICY);
	assert_int_equal(pale_policy_read(policy, "/nonexistent", "relative/../..", NULL) <= 0, 1);
	assert_int_equal(pale_audit_find("zzzz", id, NULL), -PALE_E_NOTFOUND);
	assert_int_equal(pale_workspace_find("zzzz", id, NULL), -PALE_E_NOTFOUND);
	assert_true(pale_audit_show("zzzz", stderr, 0, 0, NULL) < 0);
	assert_true(pale_workspace_discard("zzzz", NULL) < 0);
	pale_policy_free(policy);
}

/* The rules of a running box, from the program that started it or another one of the same user. */
static void test_network(void **state)
{
	static const char *const hosts[] = {"www.example.com", "preset:pypi", NULL},
				 *const gone[] = {"1", "preset:pypi", NULL},
				 *const wrong[] = {"a b c d", NULL};
	struct pale_network_change change = {.size = sizeof(change), .allow = hosts};
	struct pale_policy *policy = policy_with(NULL, NULL);
	struct seen *s = calloc(1, sizeof(*s));
	struct pale_box *box;
	struct pale_result *r;
	char id[PALE_ID_SIZE], again[PALE_ID_SIZE], *text = NULL;
	struct pale_err err = {0};

	(void)state;
	assert_int_equal(pale_policy_allow(policy, "example.com", &err), 0);
	box = start("echo ready; sleep 20", policy, s);
	while (!s->nout) {
		struct pollfd p = {pale_box_fd(box), POLLIN, 0};

		assert_true(poll(&p, 1, 20000) > 0);
		if (pale_box_dispatch(box, &err) < 0)
			fail_msg("%s", err.message);
	}
	if (pale_box_find(NULL, id, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(pale_box_id(box), id);
	assert_int_equal(pale_box_find(id, again, NULL), 0);
	assert_string_equal(id, again);
	assert_int_equal(pale_box_find("zzz", again, NULL), -PALE_E_NOTFOUND);
	assert_int_equal(pale_box_info(id, &text, &err), 0);
	assert_non_null(strstr(text, id));
	free(text);
	if (pale_box_network_change(id, &change, &text, &err) < 0)
		fail_msg("%s", err.message);
	assert_non_null(strstr(text, "allow tls www.example.com:443"));
	assert_non_null(strstr(text, "allow tls files.pythonhosted.org:443"));
	free(text);
	assert_int_equal(pale_box_network_show(id, &text, &err), 0);
	assert_non_null(strstr(text, "\"revision\":2"));
	free(text);
	change.revision = 1;
	assert_int_equal(pale_box_network_change(id, &change, NULL, &err), -PALE_E_CONFLICT);
	change = (struct pale_network_change){.size = sizeof(change), .deny = wrong};
	assert_int_equal(pale_box_network_change(id, &change, NULL, &err), -PALE_E_POLICY);
	change = (struct pale_network_change){.size = sizeof(change), .remove = gone};
	assert_int_equal(pale_box_network_change(id, &change, NULL, &err), 0);
	assert_int_equal(pale_box_network_change(id, &change, NULL, NULL), -PALE_E_NOTFOUND);
	change = (struct pale_network_change){.size = sizeof(change)};
	assert_int_equal(pale_box_network_change(id, &change, NULL, NULL), -PALE_E_USAGE);
	assert_int_equal(pale_box_destroy(box, &err), 0);
	r = finish(box);
	assert_non_null(strstr(s->events, "\"event\":\"network.changed\""));
	assert_int_equal(pale_box_network_show(id, &text, NULL), -PALE_E_NOTFOUND);
	pale_result_free(r);
	pale_policy_free(policy);
	free(s);
}

static void test_signal(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct pale_box *box = start(
		"trap 'echo got; exit 9' TERM; echo ready; while :; do sleep 0.02; done", NULL, s);
	struct pale_result *r;
	struct pale_err err = {0};

	(void)state;
	while (!s->nout) {
		struct pollfd p = {pale_box_fd(box), POLLIN, 0};

		assert_true(poll(&p, 1, 20000) > 0);
		assert_int_equal(pale_box_dispatch(box, &err), 0);
	}
	assert_int_equal(pale_box_signal(box, 0, &err), -PALE_E_USAGE);
	assert_int_equal(pale_box_signal(box, SIGTERM, &err), 0);
	r = finish(box);
	assert_int_equal(pale_result_exit_status(r), 9);
	assert_string_equal(s->out, "ready\ngot\n");
	pale_result_free(r);
	free(s);
}

static void test_supervisor_killed(void **state)
{
	struct pale_box *box = start("sleep 928374", NULL, NULL);
	struct pale_result *r = NULL;
	struct pale_err err = {0};

	(void)state;
	assert_true(becomes("928374", true));
	kill(last_child(), SIGKILL);
	assert_int_equal(pale_box_wait(box, &r, &err), -PALE_E_SYSTEM);
	assert_non_null(strstr(err.message, "lost"));
	assert_null(r);
	pale_box_free(box);
	assert_true(becomes("928374", false));
}

static void test_caller_killed(void **state)
{
	pid_t pid = fork(), copy = 0;
	char path[96];
	FILE *f;

	(void)state;
	if (pid == 0) {
		execl(self, self, "caller", NULL);
		_exit(127);
	}
	assert_true(becomes("837465", true));
	snprintf(path, sizeof(path), "%s/copy", state_dir);
	while (!(f = fopen(path, "re")) || fscanf(f, "%d", &copy) != 1) {
		if (f)
			fclose(f);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	fclose(f);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(becomes("837465", false));
	/* It holds a copy of the control socket, and that did not keep the box. */
	assert_int_equal(kill(copy, SIGKILL), 0);
}

static void test_free_ends_it(void **state)
{
	struct pale_box *box = start("sleep 746583", NULL, NULL);

	(void)state;
	assert_true(becomes("746583", true));
	pale_box_free(box);
	assert_int_equal(count_processes("746583"), 0);
	assert_int_equal(last_child(), 0);
}

static void test_streams(void **state)
{
	const char *argv[] = {"sh", "-c", "read x; echo $x $x", NULL};
	struct pale_command command = {.size = sizeof(command), .argv = argv};
	struct pale_run_options options = {.size = sizeof(options), .use_fds = true, .err = -1};
	struct pale_policy *policy = policy_with(NULL, NULL);
	struct pale_result *r = NULL;
	struct pale_err err = {0};
	int in[2], out[2];
	char text[16] = "";

	(void)state;
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(write(in[1], "ab\n", 3), 3);
	close(in[1]);
	options.in = in[0];
	options.out = out[1];
	if (pale_run(policy, &command, &options, &r, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(read(out[0], text, sizeof(text)), 6);
	assert_string_equal(text, "ab ab\n");
	pale_result_free(r);
	pale_policy_free(policy);
	close(in[0]);
	close(out[0]);
	close(out[1]);
}

/* The box has ended, and nobody takes what it wrote: destroying ends the wait for that. */
/* Whether that process has no children any more, waited for. */
static bool childless(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	for (int i = 0; i < 1000; i++) {
		FILE *f = fopen(path, "re");
		int c = f ? fgetc(f) : EOF;

		if (f)
			fclose(f);
		if (c == EOF)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return false;
}

/* A box whose output nobody takes, ended when it has ended by itself: when its first process is
 * just ending, or when its supervisor knows that it has. */
static void destroy_with_output_left(bool known)
{
	const char *argv[] = {"sh", "-c", "sleep 0.857204; head -c 120000 /dev/zero", NULL};
	struct pale_command command = {.size = sizeof(command), .argv = argv};
	struct pale_run_options options = {
		.size = sizeof(options), .use_fds = true, .in = -1, .err = -1};
	struct pale_policy *policy = policy_with(NULL, NULL);
	struct pale_result *r = NULL;
	struct pale_box *box = NULL;
	struct pale_err err = {0};
	int out[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	options.out = out[1];
	if (pale_box_start(policy, &command, &options, &box, &err) < 0)
		fail_msg("%s", err.message);
	assert_true(becomes("857204", true));
	assert_true(becomes("857204", false));
	assert_true(!known || childless(last_child()));
	assert_int_equal(pale_box_destroy(box, &err), 0);
	assert_int_equal(pale_box_wait(box, &r, &err), 0);
	if (known || strcmp(pale_result_outcome(r), "destroyed") != 0)
		assert_string_equal(pale_result_outcome(r), "exit");
	pale_result_free(r);
	pale_box_free(box);
	pale_policy_free(policy);
	close(out[0]);
	close(out[1]);
}

static void test_destroy_with_output_left(void **state)
{
	(void)state;
	destroy_with_output_left(true);
}

static void test_destroy_while_it_ends(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		destroy_with_output_left(false);
}

static void test_widened(void **state)
{
	struct pale_policy *base = policy_with(NULL, NULL), *policy = NULL;
	const char *argv[] = {"true", NULL};
	struct pale_command command = {.size = sizeof(command), .argv = argv};
	struct seen *s = calloc(1, sizeof(*s));
	struct pale_run_options options = {.size = sizeof(options), .on_event = on_event, .arg = s};
	struct pale_result *r = NULL;
	struct pale_err err = {0};

	(void)state;
	assert_int_equal(pale_policy_copy(&policy, base, &err), 0);
	assert_int_equal(pale_policy_set(policy, "limits.memory", "1GiB", &err), 0);
	assert_int_equal(
		pale_policy_read(policy, "/etc/debian_version", "/data/\xc3\xa9 \xff", &err), 0);
	options.base_policy = base;
	if (pale_run(policy, &command, &options, &r, &err) < 0)
		fail_msg("%s", err.message);
	assert_non_null(strstr(s->events, "policy.widened"));
	assert_int_equal(pale_result_exit_status(r), 0);
	pale_result_free(r);
	pale_policy_free(policy);
	pale_policy_free(base);
	free(s);
}

static void test_errors(void **state)
{
	const char *argv[] = {"no-such-command-here", NULL};
	struct pale_command command = {.size = sizeof(command), .argv = argv};
	struct pale_run_options options = {.size = sizeof(options), .in_process = true};
	struct pale_policy *policy = policy_with(NULL, NULL);
	const char *program = getenv("PALE_BOX_PROGRAM");
	char *copy = program ? strdup(program) : NULL;
	struct pale_result *r = NULL;
	struct pale_box *box = NULL;
	struct pale_plan *plan = NULL;
	struct pale_err err = {0};
	unsigned fds = count_fds();

	(void)state;
	assert_int_equal(pale_run(policy, &command, NULL, &r, &err), -PALE_E_NOTFOUND);
	assert_non_null(strstr(err.message, "no-such-command-here"));
	assert_null(r);
	assert_int_equal(pale_plan_new(policy, &command, &plan, &err), -PALE_E_NOTFOUND);
	assert_int_equal(pale_box_start(policy, &command, &options, &box, &err), -PALE_E_USAGE);
	options.size = 0;
	assert_int_equal(pale_run(policy, &command, &options, &r, &err), -PALE_E_USAGE);
	command.size = 0;
	assert_int_equal(pale_run(policy, &command, NULL, &r, &err), -PALE_E_USAGE);
	command.size = sizeof(command);
	command.cwd = "relative";
	assert_int_equal(pale_run(policy, &command, NULL, &r, NULL), -PALE_E_USAGE);
	command.cwd = NULL;
	assert_int_equal(pale_policy_set(policy, "limits.memroy", "1", &err), -PALE_E_POLICY);
	assert_non_null(strstr(err.message, "mean memory?"));
	assert_int_equal(pale_policy_load(policy, "/nonexistent/p.yaml", &err), -PALE_E_NOTFOUND);
	setenv("PALE_BOX_PROGRAM", "/nonexistent/pale-box", 1);
	assert_int_equal(pale_run(policy, &command, NULL, &r, &err), -PALE_E_NOTFOUND);
	assert_non_null(strstr(err.message, "/nonexistent/pale-box"));
	if (copy)
		setenv("PALE_BOX_PROGRAM", copy, 1);
	free(copy);
	pale_policy_free(policy);
	assert_int_equal(count_fds(), fds);
}

static int caller(void)
{
	char path[96];
	FILE *f;
	pid_t pid;

	(void)start("sleep 837465", NULL, NULL);
	/* A fork that never execs has a copy of everything, and outlives its parent. */
	pid = fork();
	if (pid > 0) {
		snprintf(path, sizeof(path), "%s/copy", getenv("PALE_STATE_DIR"));
		f = fopen(path, "we");
		if (f) {
			fprintf(f, "%d\n", (int)pid);
			fclose(f);
		}
	}
	/* Not for ever, should the test fail. */
	sleep(20);
	return 0;
}

static void test_files(void **state)
{
	const struct pale_file files[] = {
		{"/home/agent/a/b/given", "what is\nin it"},
		{"/tmp/other", ""},
		{"/usr/given", ""}, /* one that cannot be, for below */
	};
	const char *argv[] = {"sh", "-c",
			      "cat ~/a/b/given; stat -c %a,%U ~/a/b/given ~/a /tmp/other; "
			      "echo more >>~/a/b/given && touch ~/a/new && cat /tmp/other",
			      NULL};
	struct pale_command command = {
		.size = sizeof(command), .argv = argv, .files = files, .nfiles = 2};
	struct pale_run_options options = {.size = sizeof(options), .keep_output = true};
	struct pale_policy *policy = policy_with(NULL, NULL);
	char digests[2][65], *text = NULL;
	struct pale_plan *plan = NULL;
	struct pale_result *result = NULL;
	struct pale_err err = {0};

	(void)state;
	if (pale_run(policy, &command, &options, &result, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(pale_result_output(result, PALE_STDOUT, NULL),
			    "what is\nin it600,agent\n700,agent\n600,agent\n");
	assert_int_equal(pale_result_exit_status(result), 0);
	pale_result_free(result);

	/* The plan is the same whatever is in them, and does not say it. */
	for (int i = 0; i < 2; i++) {
		const struct pale_file one = {files[0].path, i ? "secret-one" : "secret-two"};

		command.files = &one;
		command.nfiles = 1;
		assert_int_equal(pale_plan_new(policy, &command, &plan, &err), 0);
		assert_int_equal(pale_plan_digest(plan, digests[i], &err), 0);
		assert_int_equal(pale_plan_json(plan, &text, &err), 0);
		assert_non_null(strstr(text, "a/b/given"));
		assert_null(strstr(text, "secret-"));
		free(text);
		pale_plan_free(plan);
	}
	assert_string_equal(digests[0], digests[1]);

	command.files = &files[2];
	assert_int_equal(pale_plan_new(policy, &command, &plan, &err), -PALE_E_POLICY);
	assert_non_null(strstr(err.message, "/usr/given"));
	pale_policy_free(policy);
}

static int group_teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", state_dir);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run_keeps_output),
		cmocka_unit_test(test_callbacks),
		cmocka_unit_test(test_several_at_once),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_slow_events),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_no_error_wanted),
		cmocka_unit_test(test_network),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_supervisor_killed),
		cmocka_unit_test(test_caller_killed),
		cmocka_unit_test(test_free_ends_it),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_widened),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_destroy_with_output_left),
		cmocka_unit_test(test_destroy_while_it_ends),
	};

	self = argv[0];
	if (argc > 1)
		return caller();
	snprintf(state_dir, sizeof(state_dir), "/tmp/pale-api.XXXXXX");
	if (!mkdtemp(state_dir))
		return 1;
	setenv("PALE_STATE_DIR", state_dir, 1);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, group_teardown);
}
