/* Landlock in forked children: each access is tried with the restriction, where it must fail, and
 * without, where it must work. */
#include "confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static char dir[] = "/tmp/pale-test-landlock-XXXXXX";
static struct landlock_host host;
static pid_t outside;
static char abstract_name[64];

static void path_in(char out[static 128], const char *name)
{
	snprintf(out, 128, "%s/%s", dir, name);
}

static int try_open(const char *name, int flags)
{
	char path[128];
	int fd;

	path_in(path, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int read_allowed(void)
{
	return try_open("ro/file", O_RDONLY);
}
static int write_allowed(void)
{
	return try_open("rw/file", O_RDWR | O_TRUNC);
}
static int read_other(void)
{
	return try_open("none/file", O_RDONLY);
}
static int list_other(void)
{
	return try_open("none", O_RDONLY | O_DIRECTORY);
}
static int write_readonly(void)
{
	return try_open("ro/file", O_WRONLY);
}
static int create_readonly(void)
{
	return try_open("ro/new", O_WRONLY | O_CREAT);
}

static int truncate_readonly(void)
{
	char path[128];

	path_in(path, "ro/file");
	return truncate(path, 0) < 0 ? errno : 0;
}

static int remove_other(void)
{
	char path[128];

	path_in(path, "none/victim");
	return unlink(path) < 0 ? errno : 0;
}

static int rename_within(void)
{
	char from[128], to[128];

	path_in(from, "rw/file");
	path_in(to, "rw/sub/file");
	if (rename(from, to) < 0)
		return errno;
	return rename(to, from) < 0 ? errno : 0;
}

static int rename_out(void)
{
	char from[128], to[128];

	path_in(from, "rw/file");
	path_in(to, "none/moved");
	return rename(from, to) < 0 ? errno : 0;
}

static int execute(const char *name)
{
	char path[128];
	int status;
	pid_t pid = fork();

	path_in(path, name);
	if (pid == 0) {
		execl(path, "x", (char *)NULL);
		_exit(errno == EACCES ? 13 : 1);
	}
	waitpid(pid, &status, 0);
	/* The file is not a program: past the permission, that is what is wrong with it. */
	return WEXITSTATUS(status) == 13 ? EACCES : 0;
}

static int execute_readonly(void)
{
	return execute("ro/file");
}
static int execute_allowed(void)
{
	return execute("rx/file");
}

static int signal_out(void)
{
	return kill(outside, 0) < 0 ? errno : 0;
}

static int abstract_out(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	memcpy(a.sun_path + 1, abstract_name, strlen(abstract_name));
	r = connect(
		fd, (struct sockaddr *)&a,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(abstract_name)));
	r = r < 0 ? errno : 0;
	close(fd);
	return r;
}

static int device_ioctl(void)
{
	char buf[64];
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), r;

	if (fd < 0)
		return errno;
	r = ioctl(fd, 0x5401, buf) < 0 ? errno : 0;
	close(fd);
	return r == ENOTTY ? 0 : r; /* the driver itself was asked */
}

enum mode { FREE, LOCKED, SCOPED };

static int allow(struct landlock *l, const char *name, enum landlock_access access)
{
	char path[128];
	_cleanup_close_ int fd = -1;

	path_in(path, name);
	fd = open(name[0] == '/' ? name : path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -1 : landlock_allow_path(l, fd, access, NULL);
}

static int run(enum mode mode, bool ioctls, int fn(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct landlock *l;

		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (mode != FREE) {
			if (landlock_new(&host, &l, NULL) < 0)
				_exit(201);
			if (mode == SCOPED && landlock_scope_only(l, NULL) < 0)
				_exit(202);
			if (allow(l, "ro", LANDLOCK_READ) < 0 ||
			    allow(l, "rx/file", LANDLOCK_READ_EXECUTE) < 0 ||
			    allow(l, "rw", LANDLOCK_READ_WRITE) < 0 ||
			    allow(l, "/dev/null", ioctls ? LANDLOCK_DEVICE : LANDLOCK_READ_WRITE) <
				    0)
				_exit(203);
			if (landlock_restrict_self(l, NULL) < 0)
				_exit(204);
		}
		_exit(fn());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void make(const char *name, bool directory)
{
	char path[128];

	path_in(path, name);
	if (directory)
		assert_int_equal(mkdir(path, 0755), 0);
	else
		close(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755));
}

static int remove_tree(void **state)
{
	static const char *const names[] = {
		"none/moved", "none/victim", "none/file", "ro/file", "ro/new",
		"rx/file",    "rw/sub/file", "rw/file",	  "rw/sub",  "none",
		"ro",	      "rx",	     "rw",	  ""};
	char path[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		path_in(path, names[i]);
		(void)remove(path);
	}
	return 0;
}

static int make_tree(void **state)
{
	(void)state;
	landlock_probe(&host);
	if (!mkdtemp(dir))
		return -1;
	make("ro", true);
	make("rx", true);
	make("rw", true);
	make("rw/sub", true);
	make("none", true);
	make("ro/file", false);
	make("rx/file", false);
	make("rw/file", false);
	make("none/file", false);
	make("none/victim", false);
	outside = getpid();
	return 0;
}

static void need(int abi)
{
	const char *must = getenv("PALE_MUST_WORK");

	if (host.abi >= abi)
		return;
	if (must && strstr(must, "landlock"))
		fail_msg("Landlock must work here; it lacks %s", host.lacks);
	print_message("# SKIP: Landlock lacks %s\n", host.lacks);
	skip();
}

static void test_files(void **state)
{
	static const struct {
		const char *name;
		int (*fn)(void);
		int abi, locked;
	} rows[] = {
		{"read_allowed", read_allowed, 1, 0},
		{"write_allowed", write_allowed, 1, 0},
		{"execute_allowed", execute_allowed, 1, 0},
		{"read_other", read_other, 1, EACCES},
		{"list_other", list_other, 1, EACCES},
		{"write_readonly", write_readonly, 1, EACCES},
		{"create_readonly", create_readonly, 1, EACCES},
		{"remove_other", remove_other, 1, EACCES},
		{"execute_readonly", execute_readonly, 1, EACCES},
		{"rename_within", rename_within, 2, 0},
		{"rename_out", rename_out, 1, EXDEV},
		{"truncate_readonly", truncate_readonly, 3, EACCES},
	};

	(void)state;
	need(1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int got;

		if (host.abi < rows[i].abi) {
			print_message("# SKIP: %s: Landlock lacks %s\n", rows[i].name, host.lacks);
			continue;
		}
		got = run(LOCKED, true, rows[i].fn);
		if (got != rows[i].locked && !(rows[i].locked == EXDEV && got == EACCES))
			fail_msg("%s: errno %d, not %d", rows[i].name, got, rows[i].locked);
		/* The test can fail: unrestricted, the same works. */
		got = run(FREE, true, rows[i].fn);
		if (got)
			fail_msg("%s: errno %d without Landlock", rows[i].name, got);
		make("none/victim", false);
		make("rw/file", false);
	}
}

static void test_ioctl(void **state)
{
	(void)state;
	need(5);
	assert_int_equal(run(LOCKED, false, device_ioctl), EACCES);
	assert_int_equal(run(LOCKED, true, device_ioctl), 0);
	assert_int_equal(run(FREE, true, device_ioctl), 0);
}

static void test_scope(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	need(6);
	snprintf(abstract_name, sizeof(abstract_name), "pale-test-%d", getpid());
	memcpy(a.sun_path + 1, abstract_name, strlen(abstract_name));
	assert_int_equal(bind(fd, (struct sockaddr *)&a,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
					  strlen(abstract_name))),
			 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(run(LOCKED, true, signal_out), EPERM);
	assert_int_equal(run(SCOPED, true, signal_out), EPERM);
	assert_int_equal(run(FREE, true, signal_out), 0);
	assert_int_equal(run(LOCKED, true, abstract_out), EPERM);
	assert_int_equal(run(SCOPED, true, abstract_out), EPERM);
	assert_int_equal(run(FREE, true, abstract_out), 0);
	/* Scope alone leaves files and mounts alone. */
	assert_int_equal(run(SCOPED, true, read_other), 0);
}

static int mount_inside(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 200;
	return mount("t", "/tmp", "tmpfs", 0, NULL) < 0 ? errno : 0;
}

/* Why the profile `nested` has scope only. */
static void test_mounts(void **state)
{
	(void)state;
	need(6);
	if (run(FREE, true, mount_inside) != 0) {
		const char *must = getenv("PALE_MUST_WORK");

		if (must && strstr(must, "userns"))
			fail_msg("userns must work here");
		print_message("# SKIP: no user namespaces here\n");
		skip();
	}
	assert_int_equal(run(LOCKED, true, mount_inside), EPERM);
	assert_int_equal(run(SCOPED, true, mount_inside), 0);
}

static void test_old_kernels(void **state)
{
	struct landlock_host none = {.lacks = "everything"};
	struct pale_err err;
	struct landlock *l = NULL;

	(void)state;
	assert_int_equal(landlock_new(&none, &l, &err), -PALE_E_HOST);
	need(1);
	for (int abi = 1; abi <= host.abi; abi++) {
		struct landlock_host old = {.abi = abi};

		assert_int_equal(landlock_new(&old, &l, &err), 0);
		if (abi < 6)
			assert_int_equal(landlock_scope_only(l, &err), -PALE_E_HOST);
		landlock_free(l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),	    cmocka_unit_test(test_ioctl),
		cmocka_unit_test(test_scope),	    cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_old_kernels),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
