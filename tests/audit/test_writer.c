/* The writer, the chain and recovery, on a state directory of the test's own. */
#include "audit/audit.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "audit/chain.h"
#include "audit/events.h"
#include "audit/ulid.h"
#include "base/clock.h"

static char root[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/pale-audit-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	return setenv("PALE_STATE_DIR", root, 1);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct audit *create(void)
{
	struct pale_err err = {0};
	struct audit *a = NULL;

	if (audit_create(&a, &err) < 0)
		fail_msg("%s", err.message);
	return a;
}

static void append(struct audit *a, const char *event, json_t *body)
{
	struct pale_err err = {0};

	if (audit_append(a, "supervise", event, body, &err) < 0)
		fail_msg("%s", err.message);
}

static char *slurp(const char *id)
{
	_cleanup_buf_ struct buf b = BUF_INIT(64 << 20);
	char path[256];

	snprintf(path, sizeof(path), "%s/runs/%s/audit.jsonl", root, id);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(buf_read_fd(&b, fd), 0);
	return take_ptr(b.data);
}

/* Checks the whole chain by itself, not with the code of verify.c. */
static unsigned check_chain(const char *id, const char *last_event)
{
	_cleanup_free_ char *text = slurp(id);
	char prev[AUDIT_HASH_SIZE];
	unsigned lines = 0;
	char event[64] = "";

	chain_genesis(id, prev);
	for (char *p = text, *nl; *p; p = nl + 1) {
		_cleanup_line_ struct chain_line l = {0};

		nl = strchr(p, '\n');
		assert_non_null(nl);
		assert_null(chain_parse(p, (size_t)(nl - p), &l));
		lines++;
		assert_int_equal(l.seq, lines);
		assert_string_equal(l.prev, prev);
		assert_string_equal(l.run, id);
		snprintf(event, sizeof(event), "%s", l.event);
		chain_hash(p, (size_t)(nl - p), prev);
	}
	assert_string_equal(event, last_event);
	return lines;
}

static bool active(const char *id)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/active/%s", root, id);
	return access(path, F_OK) == 0;
}

static void seen(void *arg, const json_t *event)
{
	json_array_append(arg, (json_t *)(uintptr_t)event);
}

static void test_run(void **state)
{
	struct audit *a = create();
	json_t *got = json_array();
	char id[AUDIT_ID_SIZE];
	struct pale_err err;
	struct stat st;

	(void)state;
	memcpy(id, audit_id(a), strlen(audit_id(a)) + 1);
	assert_true(ulid_valid(id));
	assert_int_equal(fstat(audit_dir_fd(a), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fstatat(audit_dir_fd(a), AUDIT_LOG_NAME, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	audit_observe(a, seen, got);
	append(a, "box.start",
	       json_pack("{s:s, s:[s,s]}", "code", "print(1)\n\xe2\x82\xac", "argv", "python3",
			 "x\ny"));
	append(a, "box.ready", json_object());
	assert_int_equal(audit_sync(a, &err), 0);
	assert_true(active(id));
	append(a, "box.end", json_pack("{s:s}", "outcome", "exit"));
	assert_int_equal(audit_append(a, "supervise", "usage", json_object(), &err), -PALE_E_USAGE);
	audit_free(a);
	assert_false(active(id));
	assert_int_equal(check_chain(id, "box.end"), 3);
	assert_int_equal(json_array_size(got), 3);
	assert_string_equal(json_string_value(json_object_get(json_array_get(got, 2), "outcome")),
			    "exit");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(got, 2), "seq")), 3);
	json_decref(got);

	/* What a person does later continues the chain. */
	assert_int_equal(audit_reopen(id, &a, &err), 0);
	assert_int_equal(audit_append(a, "files", "usage", json_object(), &err), -PALE_E_USAGE);
	append(a, "apply.done", json_pack("{s:i}", "n", 0));
	audit_free(a);
	assert_int_equal(check_chain(id, "apply.done"), 4);
}

static void test_refused_bodies(void **state)
{
	struct audit *a = create();
	struct pale_err err;

	(void)state;
	assert_int_equal(audit_append(a, "x", "no.such", json_object(), &err), -PALE_E_USAGE);
	assert_int_equal(audit_append(a, "x", "usage", json_pack("{s:i}", "seq", 1), &err),
			 -PALE_E_USAGE);
	assert_int_equal(audit_append(a, "x", "usage", json_pack("{s:s}", "prev", ""), &err),
			 -PALE_E_USAGE);
	append(a, "box.end", json_object());
	audit_free(a);
}

static void test_large(void **state)
{
	struct audit *a = create();
	char id[AUDIT_ID_SIZE];
	size_t big = 40u << 20;
	_cleanup_free_ char *text = malloc(big);
	struct pale_err err;

	(void)state;
	memcpy(id, audit_id(a), strlen(audit_id(a)) + 1);
	memset(text, 'x', big);
	/* The code is kept whole or nothing runs; an event is cut and says so. */
	assert_int_equal(audit_append(a, "supervise", "box.start",
				      json_pack("{s:s#}", "code", text, (int)big), &err),
			 -PALE_E_AUDIT);
	append(a, "box.start", json_pack("{s:s#}", "code", text, 20 << 20));
	append(a, "file.blocked", json_pack("{s:s#, s:i}", "path", text, 100000, "pid", 7));
	append(a, "box.end", json_object());
	audit_free(a);
	assert_int_equal(check_chain(id, "box.end"), 3);
	_cleanup_free_ char *log = slurp(id);
	const char *line = strstr(log, "\"seq\":2,");

	assert_non_null(line);
	assert_non_null(strstr(line, "\"cut\":true"));
	assert_non_null(strstr(line, "\"pid\":7"));
	assert_true(strlen(line) < 70000);
}

static void test_text(void **state)
{
	static const struct {
		const char *in;
		size_t len, max;
		const char *out;
	} rows[] = {
		{"abc", 3, 10, "abc"},
		{"", 0, 10, ""},
		{"abcdef", 6, 3, "abc..."},
		{"a\0b", 3, 10, "a\\x00b"},
		{"\xff\xfe", 2, 10, "\\xff\\xfe"},
		{"\xc3\xbc\xc3", 3, 10, "\xc3\xbc\\xc3"},
		{"\xc3\xbc\xc3\xbc", 4, 3, "\xc3\xbc..."},
		{"\xff\xff\xff", 3, 8, "\\xff\\xff..."},
		{"ab", 2, 0, "..."},
		{"\xed\xa0\x80", 3, 20, "\\xed\\xa0\\x80"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *j = audit_text(rows[i].in, rows[i].len, rows[i].max);

		assert_string_equal(json_string_value(j), rows[i].out);
		json_decref(j);
	}
}

/* Several kills at random moments of the writing: whatever is on disk is closed and whole. */
static void test_killed_writing(void **state)
{
	struct pale_err err;

	(void)state;
	for (int i = 0; i < 30; i++) {
		char id[AUDIT_ID_SIZE] = "";
		int pipefd[2];

		assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
		pid_t pid = fork();

		if (pid == 0) {
			struct audit *a = create();
			static char text[60000];

			append(a, "box.start", json_object());
			if (write(pipefd[1], audit_id(a), AUDIT_ID_SIZE) != AUDIT_ID_SIZE)
				_exit(1);
			for (size_t n = 1;; n = n * 7 % sizeof(text)) {
				memset(text, 'x', n);
				append(a, "usage", json_pack("{s:s#}", "x", text, (int)n));
			}
		}
		assert_int_equal(read(pipefd[0], id, AUDIT_ID_SIZE), AUDIT_ID_SIZE);
		usleep((useconds_t)(i * 37 % 1000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		/* Two commands find it at once; one closes it. */
		pid_t other = fork();

		if (other == 0)
			_exit(audit_recover(NULL, NULL, &err));
		int mine = audit_recover(NULL, NULL, &err), status;

		assert_int_equal(waitpid(other, &status, 0), other);
		assert_true(WIFEXITED(status));
		assert_int_equal(mine + WEXITSTATUS(status), 1);
		check_chain(id, "box.end");
		close(pipefd[0]);
		close(pipefd[1]);
	}
}

static bool put(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* A mount namespace of our own with a small tmpfs on path; in a user namespace if not root. */
static bool small_disk(const char *path)
{
	char users[64], groups[64];

	snprintf(users, sizeof(users), "%u %u 1", geteuid(), geteuid());
	snprintf(groups, sizeof(groups), "%u %u 1", getegid(), getegid());
	if (geteuid() != 0 &&
	    (unshare(CLONE_NEWUSER) < 0 || !put("/proc/self/setgroups", "deny") ||
	     !put("/proc/self/uid_map", users) || !put("/proc/self/gid_map", groups)))
		return false;
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=256k,mode=700") == 0;
}

/* In a child: 0 as it should be, 77 if there is no namespace to be had, else the line. */
static int full_disk_child(const char *path)
{
	static char text[3000];
	struct audit *a = NULL;
	struct pale_err err = {0};
	char id[AUDIT_ID_SIZE];
	int r, n = 0;

	if (!small_disk(path))
		return 77;
	if (audit_create(&a, &err) < 0 ||
	    audit_append(a, "supervise", "box.start", json_object(), &err) < 0)
		return 1;
	memcpy(id, audit_id(a), strlen(audit_id(a)) + 1);
	memset(text, 'x', sizeof(text) - 1);
	do
		r = audit_append(a, "supervise", "usage", json_pack("{s:s}", "x", text), &err);
	while (r == 0 && n++ < 1000);
	if (r != -PALE_E_AUDIT || err.sys != ENOSPC || !strstr(err.message, "prune"))
		return 2;
	/* The run is failed; its end may or may not fit. Either way the file is whole. */
	(void)!audit_append(a, "supervise", "box.end", json_pack("{s:s}", "outcome", "failed"),
			    &err);
	audit_free(a);
	/* A new run cannot start. */
	r = audit_create(&a, &err);
	if (r == 0) {
		r = audit_append(a, "supervise", "box.start", json_pack("{s:s}", "code", text),
				 &err);
		audit_free(a);
	}
	if (r == 0)
		return 3;
	if (mount("tmpfs", path, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, "size=4m") < 0)
		return 4;
	if (audit_recover(NULL, NULL, &err) < 0)
		return 5;
	check_chain(id, "box.end");
	return active(id) ? 6 : 0;
}

static void test_full_disk(void **state)
{
	const char *must = getenv("PALE_MUST_WORK");
	int status;

	(void)state;
	pid_t pid = fork();

	if (pid == 0) {
		if (mkdir(strcat(root, "/full"), 0700) < 0)
			_exit(9);
		setenv("PALE_STATE_DIR", root, 1);
		_exit(full_disk_child(root));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77 && !(must && strstr(must, "userns"))) {
		print_message("# SKIPPED: no namespaces to mount a small disk in\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Where the state directory is without PALE_STATE_DIR, for an ordinary user. */
static int no_home_child(void)
{
	char path[4096], want[128];
	struct pale_err err = {0};

	if (geteuid() == 0 &&
	    (setresgid(54321, 54321, 54321) < 0 || setresuid(54321, 54321, 54321) < 0))
		return 77;
	unsetenv("PALE_STATE_DIR");
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	if (geteuid() == 54321) {
		if (audit_state_dir(path, sizeof(path), &err) != -PALE_E_AUDIT ||
		    !strstr(err.message, "HOME is not set") ||
		    !strstr(err.message, "PALE_STATE_DIR"))
			return 1;
		return 0;
	}
	setenv("XDG_STATE_HOME", root, 1);
	snprintf(want, sizeof(want), "%s/pale", root);
	_cleanup_close_ int fd = audit_state_dir(path, sizeof(path), &err);

	if (fd < 0 || strcmp(path, want) != 0)
		return 2;
	setenv("XDG_STATE_HOME", "relative", 1);
	setenv("HOME", root, 1);
	snprintf(want, sizeof(want), "%s/.local/state/pale", root);
	_cleanup_close_ int second = audit_state_dir(path, sizeof(path), &err);

	return second >= 0 && strcmp(path, want) == 0 ? 0 : 3;
}

static void test_no_home(void **state)
{
	int status;

	(void)state;
	pid_t pid = fork();

	if (pid == 0)
		_exit(no_home_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int killed_runs;

static int note_kill(void *arg, const char *id, struct pale_err *err)
{
	(void)err;
	assert_string_equal(id, arg);
	killed_runs++;
	return 0;
}

static void test_lost(void **state)
{
	int pipefd[2];
	char id[AUDIT_ID_SIZE] = "";
	struct pale_err err;

	(void)state;
	killed_runs = 0;
	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	pid_t pid = fork();

	if (pid == 0) {
		struct audit *a = create();

		append(a, "box.start", json_pack("{s:s}", "code", "while True: pass"));
		if (write(pipefd[1], audit_id(a), AUDIT_ID_SIZE) != AUDIT_ID_SIZE)
			_exit(1);
		for (;;)
			append(a, "usage", json_pack("{s:i}", "wall_ms", 1));
	}
	assert_int_equal(read(pipefd[0], id, AUDIT_ID_SIZE), AUDIT_ID_SIZE);
	/* Alive: nothing happens. */
	assert_int_equal(audit_recover(note_kill, id, &err), 0);
	assert_int_equal(killed_runs, 0);
	struct audit *a;

	assert_int_equal(audit_reopen(id, &a, &err), -PALE_E_CONFLICT);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(audit_reopen(id, &a, &err), -PALE_E_CONFLICT);
	assert_int_equal(audit_recover(note_kill, id, &err), 1);
	assert_int_equal(killed_runs, 1);
	assert_int_equal(audit_recover(note_kill, id, &err), 0);
	assert_int_equal(killed_runs, 1);
	assert_true(check_chain(id, "box.end") >= 3);
	close(pipefd[0]);
	close(pipefd[1]);
}

static void test_torn(void **state)
{
	struct audit *a = create();
	char id[AUDIT_ID_SIZE], path[256];
	struct pale_err err;

	(void)state;
	memcpy(id, audit_id(a), strlen(audit_id(a)) + 1);
	append(a, "box.start", json_object());
	audit_free(a);
	snprintf(path, sizeof(path), "%s/runs/%s/audit.jsonl", root, id);
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_int_equal(write(fd, "{\"seq\":2,\"ti\xff", 13), 13);
	close(fd);
	assert_int_equal(audit_recover(NULL, NULL, &err), 1);
	assert_int_equal(check_chain(id, "box.end"), 3);
	_cleanup_free_ char *log = slurp(id);

	assert_non_null(strstr(log, "\"torn\":\"{\\\"seq\\\":2,\\\"ti\\\\xff\",\"torn_bytes\":13"));
}

static void test_file_limit(void **state)
{
	struct audit *a = create();
	char id[AUDIT_ID_SIZE];
	struct pale_err err;
	struct rlimit old, small;

	(void)state;
	memcpy(id, audit_id(a), strlen(audit_id(a)) + 1);
	append(a, "box.start", json_object());
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){1000, old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int r = audit_append(a, "supervise", "box.ready",
			     json_pack("{s:s}", "mechanisms", (char[2000]){[0 ... 1998] = 'm'}),
			     &err);

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(r, -PALE_E_AUDIT);
	append(a, "box.end", json_object());
	audit_free(a);
	assert_int_equal(check_chain(id, "box.end"), 2);
}

static void test_many_writers(void **state)
{
	enum { N = 20 };
	pid_t pids[N];
	struct pale_err err;

	(void)state;
	for (int i = 0; i < N; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct audit *a = create();
			char id[AUDIT_ID_SIZE];

			memcpy(id, audit_id(a), strlen(audit_id(a)) + 1);
			append(a, "box.start", json_object());
			for (int k = 0; k < 50; k++)
				append(a, "usage", json_pack("{s:i}", "wall_ms", k));
			/* Others' recovery must leave a live run alone. */
			if (audit_recover(NULL, NULL, &err) != 0)
				_exit(2);
			append(a, "box.end", json_object());
			audit_free(a);
			check_chain(id, "box.end");
			_exit(0);
		}
	}
	for (int i = 0; i < N; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
}

static void refused(const char *dir, const char *why)
{
	struct pale_err err = {0};
	struct audit *a = NULL;

	setenv("PALE_STATE_DIR", dir, 1);
	int r = audit_create(&a, &err);

	setenv("PALE_STATE_DIR", root, 1);
	assert_true(r < 0);
	if (!strstr(err.message, why))
		fail_msg("%s: %s", dir, err.message);
}

static void test_bad_state(void **state)
{
	char path[128], link[128];
	struct pale_err err;

	(void)state;
	snprintf(path, sizeof(path), "%s/open", root);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
	refused(path, "others may write");
	assert_int_equal(chmod(path, 0700), 0);
	snprintf(link, sizeof(link), "%s/link", root);
	assert_int_equal(symlink(path, link), 0);
	refused(link, "symbolic link");
	refused("relative/path", "absolute");
	refused("/proc/pale", "making the state directory");
	refused("/dev/null", "symbolic link or no directory");
	if (geteuid() != 0)
		refused("/usr", "belongs to user 0");
	else {
		assert_int_equal(chown(path, 1, 1), 0);
		refused(path, "belongs to user 1");
	}
	snprintf(path, sizeof(path), "%s/a/b/c", root);
	setenv("PALE_STATE_DIR", path, 1);
	int fd = audit_state_dir(NULL, 0, &err);

	setenv("PALE_STATE_DIR", root, 1);
	assert_true(fd >= 0);
	close(fd);
}

static int by_value(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : 1;
}

static void test_cost(void **state)
{
	enum { N = 50 };
	uint64_t make[N], sync[N];
	struct pale_err err;

	(void)state;
	for (int i = 0; i < N; i++) {
		uint64_t t0 = clock_mono_us();
		struct audit *a = create();

		append(a, "box.start",
		       json_pack("{s:s, s:[s,s]}", "code", "print(1)", "argv", "python3", "-"));
		uint64_t t1 = clock_mono_us();

		assert_int_equal(audit_sync(a, &err), 0);
		make[i] = t1 - t0;
		sync[i] = clock_mono_us() - t1;
		append(a, "box.end", json_object());
		audit_free(a);
	}
	qsort(make, N, sizeof(make[0]), by_value);
	qsort(sync, N, sizeof(sync[0]), by_value);
	print_message("# medians: create+append %lu us, sync %lu us\n", make[N / 2], sync[N / 2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_refused_bodies),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_file_limit),
		cmocka_unit_test(test_many_writers),
		cmocka_unit_test(test_bad_state),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_killed_writing),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_no_home),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
