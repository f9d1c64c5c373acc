/* The synthesised /etc: what programs need is there, and nothing of the host's users and secrets.
 */
#include "plan/etc.h"
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <setjmp.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <ftw.h>
#include <cmocka.h>
#include "base/str.h"

static const struct etc_request usual = {
	.user = "agent", .uid = 1000, .gid = 1000, .home = "/home/agent", .hostname = "pale"};

static const struct etc_entry *find(const struct etc *e, const char *path)
{
	for (size_t i = 0; i < e->n; i++)
		if (strcmp(e->entries[i].path, path) == 0)
			return &e->entries[i];
	return NULL;
}

static void assert_file(const struct etc *e, const char *path, const char *content)
{
	const struct etc_entry *f = find(e, path);

	assert_non_null(f);
	assert_int_equal(f->type, ETC_FILE);
	assert_string_equal(f->data, content);
}

/* Each path once, each parent before its children, nothing outside /etc. */
static void check_order(const struct etc *e)
{
	for (size_t i = 0; i < e->n; i++) {
		const char *path = e->entries[i].path;
		const char *slash = strrchr(path, '/');
		bool parent = strncmp(path, "/etc/", 5) == 0 && slash == path + 4;

		assert_true(strncmp(path, "/etc/", 5) == 0);
		assert_null(strstr(path, "/../"));
		for (size_t k = 0; k < i; k++) {
			const struct etc_entry *o = &e->entries[k];

			assert_string_not_equal(o->path, path);
			if (o->type == ETC_DIR && strlen(o->path) == (size_t)(slash - path) &&
			    strncmp(o->path, path, (size_t)(slash - path)) == 0)
				parent = true;
		}
		assert_true(parent);
	}
}

static void test_users(void **state)
{
	struct etc_request root = usual;
	struct pale_err err;
	struct etc e;

	(void)state;
	assert_int_equal(etc_make(&usual, &e, &err), 0);
	check_order(&e);
	assert_non_null(find(&e, "/etc/passwd"));
	assert_non_null(strstr(find(&e, "/etc/passwd")->data,
			       "\nagent:x:1000:1000:agent:/home/agent:/bin/"));
	assert_non_null(strstr(find(&e, "/etc/passwd")->data, "\nnobody:x:65534:"));
	assert_file(&e, "/etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n");
	assert_file(&e, "/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
	assert_null(find(&e, "/etc/inputrc"));
	/* Not the host's: nothing is in it, and nobody may read it. */
	assert_file(&e, "/etc/shadow", "");
	assert_int_equal(find(&e, "/etc/shadow")->mode, 0);

	root.uid = root.gid = 0;
	root.user = "root";
	root.home = "/root";
	root.terminal = true;
	assert_int_equal(etc_make(&root, &e, &err), 0);
	check_order(&e);
	assert_true(strncmp(find(&e, "/etc/passwd")->data, "root:x:0:0:root:/root:/bin/", 27) == 0);
	assert_non_null(find(&e, "/etc/profile"));
}

static void test_real_host(void **state)
{
	static const char *const secret[] = {"shadow",
					     "gshadow",
					     "sudoers",
					     "ssh",
					     "machine-id",
					     "ssl/private",
					     "pip.conf",
					     "npmrc",
					     "environment",
					     "ssl",
					     "pki",
					     "maven",
					     "maven/settings.xml",
					     "profile.d"};
	struct pale_err err;
	struct etc e;
	size_t binds = 0;

	(void)state;
	assert_int_equal(etc_make(&usual, &e, &err), 0);
	for (size_t i = 0; i < e.n; i++) {
		const struct etc_entry *b = &e.entries[i];
		struct stat st;

		if (b->type != ETC_BIND)
			continue;
		binds++;
		assert_int_equal(stat(b->data, &st), 0);
		assert_int_equal(!!S_ISDIR(st.st_mode), b->directory);
		for (size_t k = 0; k < ARRAY_SIZE(secret); k++) {
			char path[64];

			snprintf(path, sizeof(path), "/etc/%s", secret[k]);
			assert_string_not_equal(b->data, path);
			assert_string_not_equal(b->path, path);
		}
	}
	assert_true(binds < 24);
	if (access("/etc/ssl/certs", F_OK) == 0)
		assert_non_null(find(&e, "/etc/ssl/certs"));
	if (access("/etc/java-17-openjdk", F_OK) == 0)
		assert_non_null(find(&e, "/etc/java-17-openjdk"));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void make(const char *dir, const char *name, const char *link)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (link)
		assert_int_equal(symlink(link, path), 0);
	else if (str_ends(path, "/"))
		assert_int_equal(mkdir(path, 0755), 0);
	else
		close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
}

static void test_fake_hosts(void **state)
{
	char dir[] = "/tmp/pale-etc-XXXXXX";
	struct etc_request req = usual;
	struct pale_err err;
	struct etc e;
	char want[PATH_MAX];

	(void)state;
	assert_non_null(mkdtemp(dir));
	req.host_etc = dir;
	make(dir, "localtime", "../usr/share/zoneinfo/Europe/Berlin");
	make(dir, "ssl/", NULL);
	make(dir, "ssl/private/", NULL);
	make(dir, "pki/", NULL);
	make(dir, "pki/tls/", NULL);
	make(dir, "pki/tls/certs/", NULL);
	make(dir, "ssl/certs", "../pki/tls/certs");
	make(dir, "services", "/usr/share/doc");     /* as on systems whose /etc is all links */
	make(dir, "protocols", "/nonexistent/file"); /* dangling: left out */
	make(dir, "shadow", NULL);
	make(dir, "python3.11/", NULL);
	make(dir, "python3.11/sitecustomize.py", NULL);
	make(dir, "python3.12/", NULL);
	snprintf(want, sizeof(want), "%s/mime.types", dir);
	assert_int_equal(mkfifo(want, 0600), 0);

	assert_int_equal(etc_make(&req, &e, &err), 0);
	check_order(&e);
	assert_string_equal(find(&e, "/etc/localtime")->data, "/usr/share/zoneinfo/Europe/Berlin");
	assert_file(&e, "/etc/timezone", "Europe/Berlin\n");
	snprintf(want, sizeof(want), "%s/pki/tls/certs", dir);
	assert_string_equal(find(&e, "/etc/ssl/certs")->data, want);
	assert_int_equal(find(&e, "/etc/ssl/certs")->type, ETC_BIND);
	assert_int_equal(find(&e, "/etc/ssl")->type, ETC_DIR);
	assert_int_equal(find(&e, "/etc/services")->type, ETC_LINK);
	assert_null(find(&e, "/etc/protocols"));
	assert_null(find(&e, "/etc/mime.types"));
	assert_int_equal(find(&e, "/etc/shadow")->type, ETC_FILE);
	assert_int_equal(find(&e, "/etc/python3.11/sitecustomize.py")->type, ETC_BIND);
	assert_null(find(&e, "/etc/python3.12"));
	assert_null(find(&e, "/etc/fonts"));

	assert_int_equal(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void test_bad_names(void **state)
{
	static const char *const bad[] = {"", "a:b", "a\nroot::0:0", "-x", "a b", "a#b", NULL};
	struct pale_err err;
	struct etc e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct etc_request req = usual;

		req.user = bad[i];
		assert_int_equal(etc_make(&req, &e, &err), -PALE_E_POLICY);
		req = usual;
		req.hostname = bad[i];
		assert_int_equal(etc_make(&req, &e, &err), -PALE_E_POLICY);
		req = usual;
		req.home = bad[i];
		assert_int_equal(etc_make(&req, &e, &err), -PALE_E_POLICY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_real_host),
		cmocka_unit_test(test_fake_hosts),
		cmocka_unit_test(test_bad_names),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
