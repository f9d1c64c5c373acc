/* The runtime directory: made for its owner alone, refused where it is a trap, gone at the end and
 * after a supervisor that was killed. Root's is in /run and is tried there; the traps are laid for
 * an ordinary user, whose environment names the place. */
#include "supervise/runtime.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "audit/audit.h"
#include "supervise/supervise.h"

static char root[64], place[128];
static struct audit *entry;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path);
}

static int set_up(void **state)
{
	struct pale_err err = {0};

	(void)state;
	snprintf(root, sizeof(root), "/tmp/pale-place-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(place, sizeof(place), "%s/xdg", root);
	if (mkdir(place, 0700) < 0)
		return -1;
	setenv("XDG_RUNTIME_DIR", place, 1);
	snprintf(place, sizeof(place), "%s/state", root);
	setenv("PALE_STATE_DIR", place, 1);
	snprintf(place, sizeof(place), "%s/xdg", root);
	return audit_create(&entry, &err) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	audit_free(entry);
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int make(struct runtime *r, struct pale_err *err)
{
	return runtime_make(audit_id(entry), audit_dir_fd(entry), r, err);
}

static void refused(const char *why)
{
	struct runtime r = RUNTIME_NONE;
	struct pale_err err = {0};

	assert_int_equal(make(&r, &err), -PALE_E_HOST);
	if (!strstr(err.message, why))
		fail_msg("%s is not in: %s", why, err.message);
	assert_true(faccessat(audit_dir_fd(entry), RUNTIME_LINK, F_OK, AT_SYMLINK_NOFOLLOW) < 0);
}

static void test_made(void **state)
{
	struct runtime r = RUNTIME_NONE;
	struct pale_err err = {0};
	char path[RUNTIME_PATH_SIZE];
	struct stat st;
	int dir;

	(void)state;
	if (make(&r, &err) < 0)
		fail_msg("%s", err.message);
	snprintf(path, sizeof(path), "%s", r.path);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, geteuid());
	assert_non_null(strstr(path, geteuid() == 0 ? "/run/pale/" : "/xdg/pale/"));
	dir = runtime_open(audit_id(entry), audit_dir_fd(entry), &err);
	assert_true(dir >= 0);
	close(dir);
	runtime_done(&r);
	assert_true(lstat(path, &st) < 0);
	assert_int_equal(runtime_open(audit_id(entry), audit_dir_fd(entry), &err),
			 -PALE_E_NOTFOUND);
}

/* Without a place of the user's, in the state directory. */
static void test_fallback(void **state)
{
	struct runtime r = RUNTIME_NONE;
	struct pale_err err = {0};

	(void)state;
	unsetenv("XDG_RUNTIME_DIR");
	if (make(&r, &err) < 0)
		fail_msg("%s", err.message);
	assert_non_null(strstr(r.path, "/state/run/"));
	runtime_done(&r);
	/* A session that is over. */
	setenv("XDG_RUNTIME_DIR", "/nonexistent/1000", 1);
	if (make(&r, &err) < 0)
		fail_msg("%s", err.message);
	runtime_done(&r);
	setenv("XDG_RUNTIME_DIR", "run/1000", 1);
	refused("absolute");
}

static void test_traps(void **state)
{
	char ours[200], elsewhere[200], its[300];

	(void)state;
	snprintf(ours, sizeof(ours), "%s/pale", place);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", root);
	assert_int_equal(mkdir(elsewhere, 0700), 0);
	assert_int_equal(symlink(elsewhere, ours), 0);
	refused("symbolic link");
	unlink(ours);
	assert_int_equal(mkdir(ours, 0755), 0);
	assert_int_equal(chmod(ours, 0775), 0);
	refused("open to others");
	rmdir(ours);
	assert_int_equal(chmod(place, 0777), 0);
	refused("open to others");
	assert_int_equal(chmod(place, 0700), 0);
	setenv("XDG_RUNTIME_DIR", "/usr", 1);
	refused("belongs to user 0");
	setenv("XDG_RUNTIME_DIR", place, 1);
	assert_int_equal(mkdir(ours, 0700), 0);
	snprintf(its, sizeof(its), "%s/%s", ours, audit_id(entry));
	assert_int_equal(mkdir(its, 0700), 0);
	refused("there already");
	assert_int_equal(access(its, F_OK), 0);
	rmdir(its);
	assert_int_equal(symlink(elsewhere, its), 0);
	refused("there already");
}

/* A supervisor is killed; the next command cleans up, whatever the environment is by then. */
static void test_killed(void **state)
{
	struct pale_err err = {0};
	char path[RUNTIME_PATH_SIZE] = "";
	int pipes[2], status;
	ssize_t n;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		struct audit *a = NULL;
		struct runtime r = RUNTIME_NONE;

		if (audit_create(&a, &err) < 0 ||
		    audit_append(a, "supervise", "box.start", json_object(), &err) < 0 ||
		    runtime_make(audit_id(a), audit_dir_fd(a), &r, &err) < 0 ||
		    mknodat(r.dir, RUNTIME_SOCKET, S_IFSOCK | 0700, 0) < 0 ||
		    write(pipes[1], r.path, strlen(r.path)) < 0)
			_exit(1);
		_exit(0); /* without a word */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	n = read(pipes[0], path, sizeof(path) - 1);
	assert_true(n > 0);
	assert_int_equal(access(path, F_OK), 0);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(supervise_recover(&err), 1);
	assert_true(access(path, F_OK) < 0);
	close(pipes[0]);
	close(pipes[1]);
}

/* "user": root becomes nobody in particular. */
int main(int argc, char **argv)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {T(test_made), T(test_killed)};
	const struct CMUnitTest of_users[] = {T(test_made), T(test_killed), T(test_fallback),
					      T(test_traps)};

	if (argc > 1 && strcmp(argv[1], "user") == 0 && geteuid() == 0 &&
	    (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return geteuid() == 0 ? cmocka_run_group_tests(tests, NULL, NULL)
			      : cmocka_run_group_tests(of_users, NULL, NULL);
}
