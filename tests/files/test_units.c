/* Unit tests of src/files/: paths, links, manifest lines, and the confinement of the worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "files/copy.h"
#include "base/links.h"
#include "files/manifest.h"
#include "files/worker.h"

static void test_paths(void **state)
{
	static const char *const good[] = {"a", "a/b", "...", ".a", "a..", " ", "\xff", "a/.../b"};
	static const char *const bad[] = {"",  "/",  "/a",   "a/",    "a//b",
					  ".", "..", "a/..", "a/./b", "../a"};
	char name[258];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(manifest_path_ok(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(manifest_path_ok(bad[i], strlen(bad[i])));
	assert_false(manifest_path_ok("a\0b", 3));
	memset(name, 'x', sizeof(name));
	assert_true(manifest_path_ok(name, 255));
	assert_false(manifest_path_ok(name, 256));
}

static void test_links(void **state)
{
	static const struct {
		const char *path, *target;
		bool out;
	} rows[] = {
		{"l", "a", false},	     {"l", "/a", true},
		{"l", "..", true},	     {"d/l", "..", false},
		{"d/l", "../..", true},	     {"d/l", "../a", false},
		{"d/e/l", "../../a", false}, {"d/e/l", "../../../a", true},
		{"d/l", "./../a", false},    {"d/l", "x/../a", true},
		{"d/l", ".././..", true},    {"l", "...", false},
		{"l", "a/..", true},	     {"d/l", "..//..", true},
		{"l", ".", false},	     {"l", "..x", false},
		{"l", "x/..y", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (link_leads_out(rows[i].path, rows[i].target) != rows[i].out)
			fail_msg("%s -> %s", rows[i].path, rows[i].target);
}

static void test_manifest_line(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"path\":\"a\"}",
		"{\"path\":\"../a\",\"kind\":\"added\",\"type\":\"file\"}",
		"{\"path\":\"a\",\"kind\":\"added\",\"type\":\"none\"}",
		"{\"path\":\"a\",\"kind\":\"added\",\"type\":\"other\"}",
		"{\"path\":\"a\",\"kind\":\"added\",\"type\":\"symlink\"}",
		"{\"path\":\"a\",\"kind\":\"deleted\",\"type\":\"file\"}",
		"{\"path\":\"a\",\"kind\":\"added\",\"type\":\"file\",\"size\":1.5}",
		"{\"path\":\"a\",\"kind\":\"added\",\"type\":\"file\",\"size\":-1}",
		"{\"path\":\"a\",\"kind\":\"added\",\"type\":\"file\",\"mode\":4096}",
		"{\"path\":\"a\",\"kind\":\"added\",\"type\":\"file\",\"sha256\":\"xyz\"}",
		"{\"path_hex\":\"2e2e\",\"kind\":\"added\",\"type\":\"file\"}",
		"{\"path_hex\":\"6\",\"kind\":\"added\",\"type\":\"file\"}",
		"{\"path_hex\":\"00\",\"kind\":\"added\",\"type\":\"file\"}",
	};
	struct change c = {.path = (char[]){"we\"ird\n\xff"},
			   .kind = CHANGE_ADDED,
			   .type = TYPE_SYMLINK,
			   .mode = 0777,
			   .mtime_ns = -1,
			   .target = (char[]){"\xfe/x"}};
	_cleanup_buf_ struct buf b = BUF_INIT(MANIFEST_LINE_MAX);
	struct change again;
	struct pale_err err;

	(void)state;
	assert_int_equal(manifest_format(&b, &c), 0);
	assert_int_equal(manifest_parse(b.data, b.len - 1, &again, &err), 0);
	assert_string_equal(again.path, c.path);
	assert_string_equal(again.target, c.target);
	assert_true(again.mtime_ns == -1 && again.kind == CHANGE_ADDED &&
		    again.type == TYPE_SYMLINK);
	change_done(&again);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (manifest_parse(bad[i], strlen(bad[i]), &again, &err) == 0)
			fail_msg("accepted: %s", bad[i]);
		assert_null(again.path);
	}
}

/* ---------------------------------------------------------------- the worker's locks */

enum attempt {
	READ_INSIDE,
	READ_OUTSIDE,
	WRITE_INSIDE,
	WRITE_WRITABLE,
	MAKE_SOCKET,
	START_PROGRAM,
	USE_OTHER_FD,
	OPEN_PROC,
	ATTEMPTS
};

struct attempts {
	int inside, writable, other;
	int results[ATTEMPTS]; /* errno, 0: it worked */
};

static int result(long r)
{
	return r < 0 ? errno : 0;
}

/* Not through libc wrappers that would fall back to something else. */
static int try_all(void *arg, int report_fd, void *payload, struct pale_err *err)
{
	struct attempts *a = arg;
	char *argv[] = {(char[]){"true"}, NULL};

	(void)err;
	(void)report_fd;
	a->results[READ_INSIDE] = result(openat(a->inside, "file", O_RDONLY | O_CLOEXEC));
	a->results[READ_OUTSIDE] = result(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	a->results[WRITE_INSIDE] =
		result(openat(a->inside, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	a->results[WRITE_WRITABLE] =
		a->writable < 0
			? EBADF
			: result(openat(a->writable, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	a->results[MAKE_SOCKET] = result(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
	a->results[START_PROGRAM] = result(syscall(SYS_execve, "/bin/true", argv, argv + 1));
	a->results[USE_OTHER_FD] = result(fcntl(a->other, F_GETFD));
	a->results[OPEN_PROC] = result(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
	memcpy(payload, a->results, sizeof(a->results));
	return 0;
}

struct dirs {
	char top[64], inside[80], writable[80];
	int inside_fd, writable_fd;
};

static int make_dirs(void **state)
{
	static struct dirs d;
	char file[128];

	snprintf(d.top, sizeof(d.top), "/tmp/pale-files-XXXXXX");
	if (!mkdtemp(d.top))
		return -1;
	snprintf(d.inside, sizeof(d.inside), "%s/inside", d.top);
	snprintf(d.writable, sizeof(d.writable), "%s/writable", d.top);
	snprintf(file, sizeof(file), "%s/file", d.inside);
	if (mkdir(d.inside, 0700) < 0 || mkdir(d.writable, 0700) < 0 ||
	    close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) < 0)
		return -1;
	d.inside_fd = open(d.inside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d.writable_fd = open(d.writable, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &d;
	return 0;
}

static int remove_dirs(void **state)
{
	struct dirs *d = *state;

	unlinkat(d->inside_fd, "file", 0);
	unlinkat(d->inside_fd, "new", 0);
	unlinkat(d->writable_fd, "new", 0);
	close(d->inside_fd);
	close(d->writable_fd);
	rmdir(d->inside);
	rmdir(d->writable);
	return rmdir(d->top);
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1u) > 0;
}

static void run_attempts(const struct dirs *d, int write_dir, int ret[static ATTEMPTS])
{
	int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct attempts a = {.inside = d->inside_fd, .writable = write_dir, .other = other};
	char payload[WORKER_PAYLOAD];
	struct worker w = {
		.userns_fd = -1,
		.read_dirs = {d->inside_fd, -1},
		.write_dir = write_dir,
		.fds = {-1, -1, -1, -1, -1, -1, -1, -1},
		.work = try_all,
		.arg = &a,
	};
	struct pale_err err;

	assert_int_equal(worker_run(&w, payload, &err), 0);
	memcpy(ret, payload, sizeof(int) * ATTEMPTS);
	close(other);
}

static void test_worker_reads_only(void **state)
{
	int got[ATTEMPTS];

	run_attempts(*state, -1, got);
	assert_int_equal(got[READ_INSIDE], 0);
	assert_int_equal(got[MAKE_SOCKET], ENOSYS);
	assert_int_equal(got[START_PROGRAM], ENOSYS);
	assert_int_equal(got[USE_OTHER_FD], EBADF);
	if (!has_landlock()) {
		print_message("# SKIP: no Landlock on this kernel: paths are not locked\n");
		assert_null(strstr(getenv("PALE_MUST_WORK") ? getenv("PALE_MUST_WORK") : "",
				   "landlock"));
		return;
	}
	assert_int_equal(got[READ_OUTSIDE], EACCES);
	assert_int_equal(got[WRITE_INSIDE], EACCES);
	assert_int_equal(got[OPEN_PROC], EACCES);
}

static void test_worker_writes_where_it_may(void **state)
{
	const struct dirs *d = *state;
	int got[ATTEMPTS];

	run_attempts(d, d->writable_fd, got);
	assert_int_equal(got[READ_INSIDE], 0);
	assert_int_equal(got[WRITE_WRITABLE], 0);
	assert_int_equal(got[MAKE_SOCKET], ENOSYS);
	if (has_landlock())
		assert_int_equal(got[WRITE_INSIDE], EACCES);
}

/* Without the locks the same attempts work: so that the tests above can fail. */
static void test_attempts_work_without(void **state)
{
	const struct dirs *d = *state;
	struct attempts a = {.inside = d->inside_fd, .writable = d->writable_fd, .other = 0};

	assert_int_equal(result(openat(a.inside, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
	assert_int_equal(result(open("/etc/passwd", O_RDONLY | O_CLOEXEC)), 0);
	assert_int_equal(result(syscall(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0);
}

static int work_crashes(void *arg, int report_fd, void *payload, struct pale_err *err)
{
	(void)arg;
	(void)report_fd;
	(void)payload;
	(void)err;
	_exit(0); /* without its end message */
}

static int work_lies(void *arg, int report_fd, void *payload, struct pale_err *err)
{
	static const uint32_t head[2] = {1, 0xffffffff};

	(void)arg;
	(void)payload;
	(void)err;
	return write(report_fd, head, sizeof(head)) < 0 ? -1 : 0;
}

static int work_fails(void *arg, int report_fd, void *payload, struct pale_err *err)
{
	(void)arg;
	(void)report_fd;
	(void)payload;
	return err_set(err, PALE_E_HOST, "files", 0, "evil\x1b[31m\n");
}

static void test_worker_is_not_believed(void **state)
{
	static int (*const works[])(void *, int, void *,
				    struct pale_err *) = {work_crashes, work_lies, work_fails};
	char payload[WORKER_PAYLOAD];
	struct pale_err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(works); i++) {
		struct worker w = {.userns_fd = -1,
				   .read_dirs = {-1, -1},
				   .write_dir = -1,
				   .fds = {-1, -1, -1, -1, -1, -1, -1, -1},
				   .work = works[i]};

		err = (struct pale_err){0};
		assert_true(worker_run(&w, payload, &err) < 0);
		assert_true(err.message[0]);
		assert_null(strchr(err.message, '\x1b'));
		assert_null(strchr(err.message, '\n'));
	}
}

static void test_copy(void **state)
{
	const struct dirs *d = *state;
	int from = openat(d->inside_fd, "file", O_RDWR | O_CLOEXEC);
	int to = openat(d->inside_fd, "new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char hash[COPY_HASH_SIZE];

	assert_int_equal(write(from, "abc", 3), 3);
	assert_int_equal(copy_range(from, 0, to, 5, 3, 100, hash), 3);
	assert_string_equal(hash,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(copy_same(from, 0, to, 5, 3), 1);
	assert_int_equal(copy_same(from, 0, to, 0, 3), 0);
	assert_int_equal(copy_range(from, 0, to, 0, 3, 2, NULL), -EFBIG);
	assert_int_equal(ftruncate(from, (off_t)1 << 40), 0);
	assert_int_equal(copy_range(from, 0, to, 0, (int64_t)1 << 40, 1 << 20, hash) <= 65536, 1);
	assert_string_equal(hash, "");
	assert_int_equal(copy_range(from, 1, to, 0, (int64_t)1 << 40, 1 << 20, NULL) < (1 << 20),
			 1);
	close(from);
	close(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_manifest_line),
		cmocka_unit_test(test_worker_reads_only),
		cmocka_unit_test(test_worker_writes_where_it_may),
		cmocka_unit_test(test_attempts_work_without),
		cmocka_unit_test(test_worker_is_not_believed),
		cmocka_unit_test(test_copy),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_dirs, remove_dirs);
}
