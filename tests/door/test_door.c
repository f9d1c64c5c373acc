/* The supervisor's door and the rules behind it, with a stand-in for the broker: what is said, who
 * is let in, what happens in which order, and that nobody keeps it from its work. */
#include "supervise/door.h"

#include <fcntl.h>
#include <ftw.h>
#include <linux/sched.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "audit/audit.h"
#include "base/buf.h"
#include "base/fd.h"
#include "supervise/runtime.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static char root[64];

static struct {
	struct event_base *base;
	struct audit *log;
	struct live *live;
	struct door *door;
	int run_fd;
	char order[64]; /* what happened: l(ogged), s(ent), f(orce), x (lost) */
	char *sent;	/* what the broker was sent last */
	char *recorded; /* network.changed */
	json_t *refused;
	bool log_fails, ending;
} t;

static void note(const char *what)
{
	strcat(t.order, what);
}

static int on_log(void *arg, json_t *body, struct pale_err *err)
{
	(void)arg;
	note("l");
	free(t.recorded);
	t.recorded = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(body);
	return t.log_fails ? err_set(err, PALE_E_AUDIT, "audit", ENOSPC, "no room") : 0;
}

static int on_send(void *arg, int memfd, struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1u << 20);
	int fd = fcntl(memfd, F_DUPFD_CLOEXEC, 3);

	(void)arg;
	(void)err;
	note("s");
	assert_true(fcntl(memfd, F_GET_SEALS) & F_SEAL_WRITE);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(buf_read_fd(&b, fd), 0);
	close(fd);
	free(t.sent);
	t.sent = take_ptr(b.data);
	return 0;
}

static void on_force(void *arg, const struct policy_network *n)
{
	(void)arg;
	assert_ptr_equal(n, live_network(t.live));
	note("f");
}

static void on_lost(void *arg, const struct pale_err *err)
{
	(void)arg;
	(void)err;
	note("x");
}

static enum door_state state_of(void *arg)
{
	(void)arg;
	return t.ending ? DOOR_ENDING : DOOR_RUNNING;
}

static json_t *info_of(void *arg)
{
	(void)arg;
	return json_pack("{s:s}", "id", audit_id(t.log));
}

static void on_refused(void *arg, json_t *body)
{
	(void)arg;
	json_decref(t.refused);
	t.refused = body;
}

static const char *const base_rules[] = {"api.example.com", "*.example.org:80",
					 "tcp://db.example.net:5432"};

static int set_up(void **state)
{
	static const struct live_ops ops = {on_log, on_send, on_force, on_lost};
	_cleanup_policy_ struct policy *p = NULL;
	struct door_config config = {.state = state_of, .info = info_of, .refused = on_refused};
	struct pale_err err = {0};

	(void)state;
	memset(&t, 0, sizeof(t));
	snprintf(root, sizeof(root), "/tmp/pale-door-XXXXXX");
	if (!mkdtemp(root) || setenv("PALE_STATE_DIR", root, 1) < 0 ||
	    setenv("XDG_RUNTIME_DIR", root, 1) < 0)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	t.base = event_base_new();
	if (audit_create(&t.log, &err) < 0 || policy_new(&p, &err) < 0)
		goto failed;
	t.run_fd = audit_dir_fd(t.log);
	for (size_t i = 0; i < ARRAY_SIZE(base_rules); i++)
		if (policy_add_rule(p, i == 1, base_rules[i], "base", &err) < 0)
			goto failed;
	if (live_new(t.base, &p->network, false, &ops, NULL, &t.live, &err) < 0)
		goto failed;
	config.base = t.base;
	config.id = audit_id(t.log);
	config.run_fd = t.run_fd;
	config.live = t.live;
	if (door_new(&config, &t.door, &err) < 0)
		goto failed;
	return 0;
failed:
	fprintf(stderr, "# %s\n", err.message);
	return -1;
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
	struct stat st;
	int left;

	(void)state;
	door_free(t.door);
	live_free(t.live);
	left = fstatat(t.run_fd, RUNTIME_LINK, &st, AT_SYMLINK_NOFOLLOW);
	audit_free(t.log);
	event_base_free(t.base);
	free(t.sent);
	free(t.recorded);
	json_decref(t.refused);
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return left == 0 ? -1 : 0;
}

/* ---- a front ---- */

static int open_place(void)
{
	struct pale_err err = {0};
	int dir = runtime_open(audit_id(t.log), t.run_fd, &err);

	if (dir < 0)
		fail_msg("%s", err.message);
	return dir;
}

static int try_connect(int dir)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	runtime_socket_name(dir, at.sun_path);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static int front(void)
{
	_cleanup_close_ int dir = open_place();
	int fd = try_connect(dir);

	assert_true(fd >= 0);
	return fd;
}

static void turn(void)
{
	for (int i = 0; i < 8; i++)
		event_base_loop(t.base, EVLOOP_NONBLOCK);
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* A line, or NULL: nothing comes, or the end. */
static char *hear(int fd)
{
	_cleanup_buf_ struct buf b = BUF_INIT(16u << 20);

	for (int i = 0; i < 400; i++) {
		char c[65536];
		ssize_t n = recv(fd, c, sizeof(c), MSG_DONTWAIT | MSG_PEEK);
		char *end = n > 0 ? memchr(c, '\n', (size_t)n) : NULL;

		if (n == 0)
			break;
		if (n > 0) {
			size_t len = end ? (size_t)(end - c) + 1 : (size_t)n;

			assert_int_equal(recv(fd, c, len, 0), len);
			buf_add(&b, c, len);
		}
		if (end)
			return take_ptr(b.data);
		turn();
	}
	return NULL;
}

static json_t *ask(int fd, const char *text)
{
	_cleanup_free_ char *line = NULL;
	json_t *o;

	say(fd, text);
	line = hear(fd);
	assert_non_null(line);
	o = json_loads(line, 0, NULL);
	assert_non_null(o);
	return o;
}

static void expect_error(int fd, const char *text, const char *code)
{
	json_t *o = ask(fd, text);
	const char *got = json_string_value(json_object_get(json_object_get(o, "error"), "code"));

	if (!got || strcmp(got, code) != 0)
		fail_msg("%s: %s instead of %s", text, got ? got : "no error", code);
	json_decref(o);
}

static void expect_text(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("%s is not in %s", part, text ? text : "nothing");
}

/* ---- what is said ---- */

static void test_info(void **state)
{
	int fd = front();
	json_t *o = ask(fd, "{\"pale\":1,\"id\":7,\"command\":\"info\"}\n");
	json_t *result = json_object_get(o, "result");

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(o, "id")), 7);
	assert_string_equal(json_string_value(json_object_get(result, "id")), audit_id(t.log));
	assert_true(json_array_size(json_object_get(result, "commands")) >= 3);
	json_decref(o);
	close(fd);
}

static void test_malformed(void **state)
{
	static const struct {
		const char *text, *code;
		bool closes;
	} cases[] = {
		{"\n", "malformed", true},
		{"nonsense\n", "malformed", true},
		{"[1]\n", "malformed", true},
		{"{\"pale\":1}\n", "malformed", true},
		{"{\"command\":\"info\"}\n", "malformed", true},
		{"{\"pale\":1,\"command\":\"info\",\"x\":1}\n", "malformed", true},
		{"{\"pale\":1,\"pale\":1,\"command\":\"info\"}\n", "malformed", true},
		{"{\"pale\":1,\"id\":[],\"command\":\"info\"}\n", "malformed", true},
		{"{\"pale\":1,\"command\":\"info\",\"arguments\":[]}\n", "malformed", true},
		{"{\"pale\":1,\"command\":\"\xff\"}\n", "malformed", true},
		{"{\"pale\":2,\"command\":\"info\"}\n", "version", false},
		{"{\"pale\":1,\"command\":\"box.burn\"}\n", "unknown_command", false},
		{"{\"pale\":1,\"command\":\"info\",\"arguments\":{\"a\":1}}\n", "arguments", false},
		{"{\"pale\":1,\"command\":\"network.change\"}\n", "arguments", false},
		{"{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"allow\":\"x\"}}\n",
		 "arguments", false},
		{"{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"allow\":[5]}}\n",
		 "arguments", false},
		{"{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"allow\":[\"a b "
		 "c\"]}}\n",
		 "policy", false},
		{"{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"allow\":[{\"hots\":"
		 "\"a.example\"}]}}\n",
		 "policy", false},
		{"{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"remove\":[77]}}\n",
		 "not_found", false},
		{"{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"remove\":["
		 "\"other.example\"]}}\n",
		 "not_found", false},
		{"{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"secrets\":[\"A@b\"]}}"
		 "\n",
		 "refused", false},
		{"{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"allow\":["
		 "\"a.example\"],\"revision\":9}}\n",
		 "conflict", false},
		{"{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"allow\":["
		 "\"GET a.example/x/**\"]}}\n",
		 "refused", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd = front();
		char c;

		expect_error(fd, cases[i].text, cases[i].code);
		turn();
		if (cases[i].closes)
			assert_int_equal(recv(fd, &c, 1, MSG_DONTWAIT), 0);
		else
			json_decref(ask(fd, "{\"pale\":1,\"command\":\"info\"}\n"));
		close(fd);
	}
	turn();
	assert_string_equal(t.order, "");
}

static void test_long_line(void **state)
{
	_cleanup_free_ char *line = malloc(CONTROL_REQUEST_MAX + 100);
	int fd = front();
	size_t sent = 0;
	_cleanup_free_ char *answer = NULL;

	(void)state;
	memset(line, ' ', CONTROL_REQUEST_MAX + 100);
	while (sent < CONTROL_REQUEST_MAX + 100) {
		ssize_t n = send(fd, line + sent, CONTROL_REQUEST_MAX + 100 - sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			break;
		sent += n > 0 ? (size_t)n : 0;
		turn();
	}
	answer = hear(fd);
	expect_text(answer, "malformed");
	close(fd);
}

/* In bytes, and several requests in one piece. */
static void test_pieces(void **state)
{
	static const char one[] = "{\"pale\":1,\"id\":1,\"command\":\"info\"}\n";
	_cleanup_buf_ struct buf many = BUF_INIT(1u << 20);
	int fd = front();
	char *line;

	(void)state;
	for (size_t i = 0; i + 1 < sizeof(one); i++) {
		assert_int_equal(send(fd, one + i, 1, MSG_NOSIGNAL), 1);
		turn();
	}
	line = hear(fd);
	expect_text(line, "\"id\":1");
	free(line);
	for (int i = 0; i < 50; i++)
		buf_addf(&many, "{\"pale\":1,\"id\":%d,\"command\":\"info\"}\n", i);
	say(fd, many.data);
	for (int i = 0; i < 50; i++) {
		char want[16];

		snprintf(want, sizeof(want), "\"id\":%d,", i);
		line = hear(fd);
		expect_text(line, want);
		free(line);
	}
	close(fd);
}

/* ---- changes ---- */

/* As the broker does. */
static void acknowledge(void)
{
	live_taken(t.live);
	live_acknowledged(t.live);
}

static void test_change(void **state)
{
	int fd = front(), other = front();
	_cleanup_free_ char *line = NULL, *late = NULL;
	json_t *o, *rules;

	(void)state;
	say(fd, "{\"pale\":1,\"id\":1,\"command\":\"network.change\",\"arguments\":{\"allow\":["
		"\"new.example.com\",{\"host\":\"entry.example.com\",\"port\":80}],\"deny\":["
		"\"bad.example.com\"],\"remove\":[1]}}\n");
	turn();
	/* On record, then with the broker; no answer and nothing in force before it says so. */
	assert_string_equal(t.order, "ls");
	assert_int_equal(live_network(t.live)->nrules, 3);
	expect_text(t.recorded, "\"effect\":\"widened and narrowed\"");
	expect_text(t.recorded, "allow tls new.example.com:443");
	expect_text(t.recorded, "\"removed\":[\"allow tls api.example.com:443\"]");
	expect_text(t.recorded, "\"program\":\"test-door\"");
	expect_text(t.sent, "new.example.com");
	expect_text(t.sent, "\"host\":\"entry.example.com\"");
	assert_null(strstr(t.sent, "api.example.com"));
	assert_null(hear(fd));
	/* Another's change waits; what only looks does not. */
	say(other, "{\"pale\":1,\"id\":2,\"command\":\"network.change\",\"arguments\":{\"remove\":"
		   "[\"new.example.com\"]}}\n");
	assert_null(hear(other));
	acknowledge();
	turn();
	line = hear(fd);
	expect_text(line, "\"revision\":2");
	assert_string_equal(t.order, "lsfls");
	assert_int_equal(live_network(t.live)->nrules, 5);
	acknowledge();
	late = hear(other);
	expect_text(late, "\"revision\":3");
	expect_text(late, "\"effect\":\"narrowed\"");
	/* Numbers are not used again. */
	o = ask(fd, "{\"pale\":1,\"command\":\"network.show\"}\n");
	rules = json_object_get(json_object_get(o, "result"), "rules");
	assert_int_equal(json_array_size(rules), 4);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(rules, 0), "rule")), 2);
	json_decref(o);
	/* What is there already is no change, and needs no broker. */
	json_decref(ask(fd, "{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"deny\":["
			    "\"bad.example.com\"]}}\n"));
	assert_string_equal(t.order, "lsflsf");
	close(fd);
	close(other);
}

static void test_covered(void **state)
{
	int fd = front();

	(void)state;
	/* A part of what a rule covers is not the rule. */
	expect_error(fd,
		     "{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"remove\":["
		     "\"api.example.com:8443\"]}}\n",
		     "not_found");
	expect_error(fd,
		     "{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"remove\":["
		     "\"example.org\"]}}\n",
		     "not_found");
	say(fd, "{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"remove\":["
		"\"*.example.com\",\"*.example.org\"]}}\n");
	turn();
	acknowledge();
	json_decref(ask(fd, ""));
	expect_text(t.recorded, "\"removed\":[\"allow tls api.example.com:443\",\"deny "
				"*.example.org:80\"]");
	assert_int_equal(live_network(t.live)->nrules, 1);
	close(fd);
}

static void test_log_fails(void **state)
{
	int fd = front();

	(void)state;
	t.log_fails = true;
	expect_error(fd,
		     "{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"allow\":["
		     "\"x.example\"]}}\n",
		     "failed");
	assert_string_equal(t.order, "l");
	assert_int_equal(live_network(t.live)->nrules, 3);
	assert_false(live_busy(t.live));
	close(fd);
}

/* The one who asked is gone: the change is made all the same, and the next can be. */
static void test_gone(void **state)
{
	int fd = front(), other;

	(void)state;
	say(fd,
	    "{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"allow\":[\"a.example\"]"
	    "}}\n");
	turn();
	close(fd);
	turn();
	acknowledge();
	turn();
	assert_int_equal(live_network(t.live)->nrules, 4);
	other = front();
	json_decref(ask(other, "{\"pale\":1,\"command\":\"info\"}\n"));
	close(other);
}

static void test_ending(void **state)
{
	int fd = front();

	(void)state;
	t.ending = true;
	json_decref(ask(fd, "{\"pale\":1,\"command\":\"network.show\"}\n"));
	expect_error(fd,
		     "{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"allow\":["
		     "\"a.example\"]}}\n",
		     "state");
	close(fd);
}

static void test_counters(void **state)
{
	struct egress_event ev = {.outcome = EGRESS_ALLOWED,
				  .what = EGRESS_CONNECTION,
				  .count = 2,
				  .rule = 0,
				  .bytes_in = 100};
	int fd = front();
	json_t *whole, *o, *c;

	(void)state;
	live_count(t.live, &ev);
	ev.rule = 77;
	live_count(t.live, &ev);
	ev = (struct egress_event){
		.outcome = EGRESS_BLOCKED, .what = EGRESS_LOOKUP, .count = 5, .rule = -1};
	live_count(t.live, &ev);
	/* They stay with their rule. */
	say(fd, "{\"pale\":1,\"command\":\"network.change\",\"arguments\":{\"remove\":[2]}}\n");
	turn();
	acknowledge();
	json_decref(ask(fd, ""));
	whole = ask(fd, "{\"pale\":1,\"command\":\"network.show\"}\n");
	o = json_object_get(whole, "result");
	c = json_object_get(json_array_get(json_object_get(o, "rules"), 0), "counters");
	assert_int_equal(json_integer_value(json_object_get(c, "connections")), 2);
	assert_int_equal(json_integer_value(json_object_get(c, "bytes_in")), 100);
	assert_int_equal(json_integer_value(json_object_get(o, "unmatched_blocked")), 5);
	json_decref(whole);
	close(fd);
}

/* ---- who comes, and how many ---- */

static void test_many(void **state)
{
	int fds[200];

	(void)state;
	/* More than there is room for: the idle ones make it. */
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = front();
		json_decref(ask(fds[i], "{\"pale\":1,\"command\":\"info\"}\n"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	turn();
	/* All of them in the middle of a line: the next is told. */
	for (size_t i = 0; i < DOOR_CLIENTS; i++) {
		fds[i] = front();
		say(fds[i], "{");
		turn();
	}
	fds[DOOR_CLIENTS] = front();
	{
		_cleanup_free_ char *line = hear(fds[DOOR_CLIENTS]);

		expect_text(line, "\"busy\"");
	}
	for (size_t i = 0; i <= DOOR_CLIENTS; i++)
		close(fds[i]);
	turn();
	fds[0] = front();
	json_decref(ask(fds[0], "{\"pale\":1,\"command\":\"info\"}\n"));
	close(fds[0]);
}

/* It asks and asks and takes no answer: others are served, and no more is read of it. */
static void test_never_reads(void **state)
{
	static const char show[] = "{\"pale\":1,\"command\":\"network.show\"}\n";
	int deaf = front(), other;
	size_t sent = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		ssize_t n = send(deaf, show, sizeof(show) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0)
			sent += (size_t)n;
		if (i % 50 == 0)
			event_base_loop(t.base, EVLOOP_NONBLOCK);
	}
	assert_true(sent < 4u << 20);
	other = front();
	json_decref(ask(other, show));
	close(other);
	close(deaf);
}

/* In another process, which may have become somebody else. */
static int refused_in_child(int (*become)(void))
{
	_cleanup_close_ int dir = open_place();
	pid_t pid;
	int status;

	assert_int_equal(fchdir(dir), 0);
	pid = fork();
	if (pid == 0) {
		struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = RUNTIME_SOCKET};
		char line[512];
		ssize_t n;
		int fd;

		alarm(20);
		if (become() < 0)
			_exit(77);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
			_exit(errno == EACCES ? 13 : 1);
		n = recv(fd, line, sizeof(line) - 1, 0);
		line[n > 0 ? n : 0] = '\0';
		_exit(strstr(line, "\"refused\"") ? 0 : 2);
	}
	assert_int_equal(chdir("/"), 0);
	while (waitpid(pid, &status, WNOHANG) == 0)
		event_base_loop(t.base, EVLOOP_NONBLOCK);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int become_nobody(void)
{
	return setresgid(65534, 65534, 65534) < 0 ? -1 : setresuid(65534, 65534, 65534);
}

static void test_other_user(void **state)
{
	_cleanup_close_ int dir = -1;

	(void)state;
	assert_int_equal(refused_in_child(become_nobody), 13);
	/* And were the directory open. */
	dir = open_place();
	assert_int_equal(fchmod(dir, 0711), 0);
	assert_int_equal(fchmodat(dir, RUNTIME_SOCKET, 0777, 0), 0);
	/* (connecting by the working directory, which needs no way to it) */
	{
		pid_t pid;
		int status;

		assert_int_equal(fchdir(dir), 0);
		pid = fork();
		if (pid == 0) {
			struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = RUNTIME_SOCKET};
			char line[512];
			ssize_t n;
			int fd = socket(AF_UNIX, SOCK_STREAM, 0);

			alarm(20);
			if (become_nobody() < 0 ||
			    connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
				_exit(1);
			n = recv(fd, line, sizeof(line) - 1, 0);
			line[n > 0 ? n : 0] = '\0';
			_exit(strstr(line, "\"refused\"") ? 0 : 2);
		}
		assert_int_equal(chdir("/"), 0);
		while (waitpid(pid, &status, WNOHANG) == 0)
			event_base_loop(t.base, EVLOOP_NONBLOCK);
		assert_int_equal(status, 0);
	}
	assert_int_equal(json_integer_value(json_object_get(t.refused, "uid")), 65534);
	/* Nobody is told the way by a directory that is not the owner's alone. */
	{
		struct pale_err err = {0};

		assert_true(runtime_open(audit_id(t.log), t.run_fd, &err) < 0);
		expect_text(err.message, "open to others");
	}
}

/* As a process of a box would come, could it see the socket. */
static int become_boxed(void)
{
	pid_t pid;
	int status;

	if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		return 0;
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return -1;
	_exit(WEXITSTATUS(status));
}

static void test_from_within(void **state)
{
	int r;

	(void)state;
	r = refused_in_child(become_boxed);
	if (r == 77) {
		print_message("# SKIP from within a box: no user namespaces here\n");
		skip();
	}
	/* Root's capabilities over the directory are not those of a user namespace. */
	if (geteuid() == 0 && r == 13)
		return;
	assert_int_equal(r, 0);
	expect_text(json_string_value(json_object_get(t.refused, "why")), "box");
}

/* A process with a number of our choice. */
static pid_t fork_as(pid_t number)
{
	struct clone_args how = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};

	return (pid_t)syscall(SYS_clone3, &how, sizeof(how));
}

/* Who connected is gone, and its number is that of a process which might have come in. */
static void test_number_of_another(void **state)
{
	_cleanup_close_ int dir = open_place(), fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	_cleanup_free_ char *line = NULL;
	pid_t first, second;
	_cleanup_close_ int pidfd = -1;
	socklen_t len = sizeof(pidfd);
	int status;

	(void)state;
	runtime_socket_name(dir, at.sun_path);
	first = fork();
	if (first == 0)
		_exit(connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0);
	assert_int_equal(waitpid(first, &status, 0), first);
	assert_int_equal(status, 0);
	second = fork_as(first);
	if (second == 0) {
		pause();
		_exit(0);
	}
	if (second < 0 ||
	    (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0 && errno == ENOPROTOOPT)) {
		print_message("# SKIP a number of another's: no such number, or an old kernel\n");
		if (second > 0) {
			kill(second, SIGKILL);
			waitpid(second, NULL, 0);
		}
		skip();
	}
	assert_int_equal(second, first);
	say(fd, "{\"pale\":1,\"id\":1,\"command\":\"info\"}\n");
	line = hear(fd);
	kill(second, SIGKILL);
	waitpid(second, NULL, 0);
	assert_non_null(line);
	expect_text(line, "\"refused\"");
	expect_text(json_string_value(json_object_get(t.refused, "why")), "gone");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_other_user), /* takes root to become one */
		T(test_info),	     T(test_malformed),
		T(test_long_line),   T(test_pieces),
		T(test_change),	     T(test_covered),
		T(test_log_fails),   T(test_gone),
		T(test_ending),	     T(test_counters),
		T(test_many),	     T(test_never_reads),
		T(test_from_within), T(test_number_of_another),
	};
	/* Root alone can be another user, or choose the number of a process. */
	size_t from = geteuid() == 0 ? 0 : 1, n = ARRAY_SIZE(tests) - 2 * from;

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return _cmocka_run_group_tests("door", tests + from, n, NULL, NULL);
}
