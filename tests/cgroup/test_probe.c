/* Where boxes' groups go, against trees that are made up: versions, containers, delegation,
 * systemd. */
#include "confine/cgroup_impl.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/fd.h"

static char top[64]; /* of one made-up tree */
static char cgroup_file[96], mountinfo_file[96], systemd_dir[96], swaps_file[96], runtime[96];
static struct cgroup_source source;

static void put(const char *path, const char *text)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", top, path);
	for (char *p = full + strlen(top) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
	_cleanup_close_ int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void format_into(const char *file, const char *text) /* "@" stands for the tree */
{
	char out[4096];
	size_t n = 0;

	for (; *text && n + sizeof(top) < sizeof(out); text++) {
		if (*text == '@')
			n += (size_t)snprintf(out + n, sizeof(out) - n, "%s", top);
		else
			out[n++] = *text;
	}
	out[n] = '\0';
	put(file, out);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/pale-cgroup-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(cgroup_file, sizeof(cgroup_file), "%s/cgroup", top);
	snprintf(mountinfo_file, sizeof(mountinfo_file), "%s/mountinfo", top);
	snprintf(systemd_dir, sizeof(systemd_dir), "%s/systemd", top);
	snprintf(swaps_file, sizeof(swaps_file), "%s/swaps", top);
	snprintf(runtime, sizeof(runtime), "%s/runtime", top);
	source = (struct cgroup_source){cgroup_file, mountinfo_file, systemd_dir,
					swaps_file,  runtime,	     4321};
	put("swaps", "Filename Type Size Used Priority\n");
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf -- %s", top);
	return system(command) == 0 ? 0 : -1; /* NOLINT: a test, and mkdtemp's name */
}

static struct cgroup_host probe(void)
{
	struct cgroup_host h;

	cgroup_probe_at(&source, &h);
	return h;
}

#define assert_in_tree(value, want)                                 \
	do {                                                        \
		char full_[300];                                    \
		snprintf(full_, sizeof(full_), "%s/%s", top, want); \
		assert_string_equal(value, full_);                  \
	} while (0)

#define assert_says(h, text)                                                   \
	do {                                                                   \
		if (!strstr((h).why, text))                                    \
			fail_msg("\"%s\" does not say \"%s\"", (h).why, text); \
	} while (0)

static void v1_mounts(void)
{
	format_into(
		"mountinfo",
		"31 23 0:28 / @ rw - tmpfs tmpfs rw\n"
		"32 31 0:29 / @/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
		"35 31 0:32 / @/mem\\040ory rw - cgroup cgroup rw,memory\n"
		"39 31 0:36 /docker/abc @/pids rw - cgroup cgroup rw,pids\n"
		"41 31 0:38 / @/unified rw - cgroup2 cgroup2 rw\n");
	put("unified/cgroup.controllers", "");
}

static void test_v1(void **state)
{
	(void)state;
	v1_mounts();
	put("cgroup", "8:pids:/docker/abc/deep\n4:memory:/outer\n1:cpu,cpuacct:/\n0::/\n");
	put("cpu,cpuacct/cpu.shares", "1024\n");
	put("mem ory/outer/memory.memsw.limit_in_bytes", "1\n");
	put("pids/deep/pids.max", "max\n");
	struct cgroup_host h = probe();

	assert_int_equal(h.kind, CGROUP_V1);
	assert_true(h.memory && h.swap && h.pids && h.cpu && h.cputime);
	assert_in_tree(h.v1[CGROUP_MEMORY], "mem ory/outer");
	assert_in_tree(h.v1[CGROUP_PIDS], "pids/deep");
	assert_in_tree(h.v1[CGROUP_CPU], "cpu,cpuacct");
	assert_string_equal(h.v1[CGROUP_CPU], h.v1[CGROUP_CPUACCT]);
	assert_string_equal(h.why, "");
}

/* A container that sees another's part of the tree, a controller that is off, swap that is not
 * counted. */
static void test_v1_missing(void **state)
{
	(void)state;
	v1_mounts();
	put("cgroup", "8:pids:/elsewhere\n1:cpu,cpuacct:/\n0::/\n");
	put("cpu,cpuacct/cpu.shares", "1024\n");
	put("pids/deep/pids.max", "max\n");
	struct cgroup_host h = probe();

	assert_int_equal(h.kind, CGROUP_V1);
	assert_true(h.cpu && h.cputime && !h.memory && !h.pids);
	assert_says(h, "boot with cgroup_enable=memory");
	put("cgroup", "4:memory:/outer\n8:pids:/elsewhere\n1:cpu,cpuacct:/\n0::/\n");
	put("mem ory/outer/memory.limit_in_bytes", "1\n");
	put("swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n");
	h = probe();
	assert_int_equal(h.kind, CGROUP_V1);
	assert_true(h.memory && !h.pids && !h.swap);
	assert_says(h, "the pids controller is not mounted");
	assert_says(h, "swapaccount=1");
	/* A container without any mount of it. */
	put("mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n");
	h = probe();
	assert_int_equal(h.kind, CGROUP_NONE);
	assert_says(h, "the memory controller is not mounted");
}

static void v2_tree(const char *own)
{
	char line[200];

	format_into("mountinfo", "40 31 0:38 / @/cg rw - cgroup2 cgroup2 rw\n");
	snprintf(line, sizeof(line), "0::%s\n", own);
	put("cgroup", line);
}

static void v2_group(const char *path, const char *procs, const char *controllers)
{
	char file[200];

	snprintf(file, sizeof(file), "cg%s/cgroup.procs", path);
	put(file, procs);
	snprintf(file, sizeof(file), "cg%s/cgroup.controllers", path);
	put(file, controllers);
	snprintf(file, sizeof(file), "cg%s/cgroup.subtree_control", path);
	put(file, "");
	if (path[0]) {
		snprintf(file, sizeof(file), "cg%s/cgroup.events", path);
		put(file, "populated 1\n");
		snprintf(file, sizeof(file), "cg%s/cgroup.kill", path);
		put(file, "");
	}
}

#define ALL "cpuset cpu io memory pids\n"

static void test_v2_root(void **state)
{
	(void)state;
	v2_tree("/");
	v2_group("", "1\n2\n", ALL);
	struct cgroup_host h = probe();

	assert_int_equal(h.kind, CGROUP_V2);
	assert_in_tree(h.base, "cg");
	assert_true(h.memory && h.pids && h.cpu && h.kill && !h.vacate);
	/* The root of a container's namespace looks like any group: processes in it are in the way.
	 */
	put("cg/cgroup.events", "populated 1\n");
	h = probe();
	assert_int_equal(h.kind, CGROUP_NONE);
	assert_says(h, "holds other processes");
}

static void test_v2_alone_or_beside(void **state)
{
	char self[32];

	(void)state;
	v2_tree("/a/b");
	v2_group("", "1\n", ALL);
	v2_group("/a", "", ALL);
	snprintf(self, sizeof(self), "%d\n", (int)getpid());
	v2_group("/a/b", self, "memory pids\n");
	struct cgroup_host h = probe();

	assert_int_equal(h.kind, CGROUP_V2);
	assert_in_tree(h.base, "cg/a/b");
	assert_true(h.vacate && h.memory && h.pids && !h.cpu);
	assert_says(h, "cpu not enabled");
	/* With others: beside us, unless that would be outside of a limit. */
	put("cg/a/b/cgroup.procs", "1\n2\n");
	h = probe();
	assert_int_equal(h.kind, CGROUP_V2);
	assert_in_tree(h.base, "cg/a");
	assert_false(h.vacate);
	put("cg/a/b/memory.max", "1073741824\n");
	h = probe();
	assert_int_equal(h.kind, CGROUP_NONE);
	assert_says(h, "holds other processes");
	put("cg/a/b/memory.max", "max\n");
	assert_int_equal(probe().kind, CGROUP_V2);
}

static void test_v2_memory_off(void **state)
{
	(void)state;
	v2_tree("/");
	v2_group("", "1\n", "cpu pids\n");
	struct cgroup_host h = probe();

	assert_int_equal(h.kind, CGROUP_V2);
	assert_false(h.memory);
	assert_says(h, "cgroup_enable=memory");
}

static void test_systemd(void **state)
{
	char path[200], self[32];

	(void)state;
	mkdir(systemd_dir, 0755);
	v2_tree("/system.slice/x.service");
	v2_group("", "1\n", ALL);
	v2_group("/system.slice", "", ALL);
	snprintf(self, sizeof(self), "%d\n", (int)getpid());
	v2_group("/system.slice/x.service", self, ALL);
	/* Not delegated, and no user manager to ask. */
	struct cgroup_host h = probe();

	assert_int_equal(h.kind, CGROUP_NONE);
	assert_says(h, "loginctl enable-linger");
	assert_says(h, "not delegated");
	/* Delegated. tmpfs has user attributes since Linux 6.6. */
	snprintf(path, sizeof(path), "%s/cg/system.slice/x.service", top);
	if (setxattr(path, "user.delegate", "1", 1, 0) < 0) {
		print_message("# no user attributes in /tmp: %s\n", strerror(errno));
		return;
	}
	h = probe();
	assert_int_equal(h.kind, CGROUP_V2);
	assert_in_tree(h.base, "cg/system.slice/x.service");
	/* A group within it that somebody made counts as it does. */
	v2_tree("/system.slice/x.service/leaf");
	v2_group("/system.slice/x.service", "", ALL);
	v2_group("/system.slice/x.service/leaf", "1\n2\n", ALL);
	h = probe();
	assert_int_equal(h.kind, CGROUP_V2);
	assert_in_tree(h.base, "cg/system.slice/x.service");
	/* But what is delegated to a user's manager is that manager's. */
	v2_tree("/user.slice/user@4321.service/run");
	v2_group("/user.slice/user@4321.service", "", ALL);
	v2_group("/user.slice/user@4321.service/run", "1\n2\n", ALL);
	snprintf(path, sizeof(path), "%s/cg/user.slice/user@4321.service", top);
	assert_int_equal(setxattr(path, "user.delegate", "1", 1, 0), 0);
	assert_int_equal(probe().kind, CGROUP_NONE);
}

static void test_nothing(void **state)
{
	(void)state;
	put("cgroup", "0::/\n");
	put("mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n");
	struct cgroup_host h = probe();

	assert_int_equal(h.kind, CGROUP_NONE);
	assert_says(h, "mount -t cgroup2");
	/* Files that make no sense are no worse. */
	put("cgroup", "x\n::::\n0:\n\n9:memory\n");
	put("mountinfo", " - cgroup2\n1 2 3 - cgroup x memory\n\\ - cgroup2 \\1\n");
	assert_int_equal(probe().kind, CGROUP_NONE);
	source.self_cgroup = "/nonexistent";
	assert_says(probe(), "cannot be read");
}

static void test_words(void **state)
{
	(void)state;
	assert_true(cgroup_word("cpuset cpu io\n", "cpu"));
	assert_false(cgroup_word("cpuset cpuacct\n", "cpu"));
	assert_true(cgroup_word("rw,memory", "memory"));
	assert_int_equal(cgroup_key("oom 1\noom_kill 12\n", "oom_kill"), 12);
	assert_int_equal(cgroup_key("oom_kill_disable 1\n", "oom_kill"), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_v1),
		TEST(test_v1_missing),
		TEST(test_v2_root),
		TEST(test_v2_alone_or_beside),
		TEST(test_v2_memory_off),
		TEST(test_systemd),
		TEST(test_nothing),
		cmocka_unit_test(test_words),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
