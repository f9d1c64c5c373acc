/* Loading: what is wrong is told with its place and leaves the policy as it was; what is right
 * means what it says; the canonical text is the policy. */
#include "policy/policy.h"
#include "policy/model.h"
#include "base/str.h"
#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <sys/stat.h>
#include <cmocka.h>

static int load_text(struct policy *p, const char *text, bool json, struct pale_err *err)
{
	return policy_load_memory(p, text, strlen(text), json ? "f.json" : "f.yaml", "/base", json,
				  err);
}

struct wrong {
	const char *text;
	const char *message; /* how it begins */
};

static const struct wrong wrong_yaml[] = {
	{"", "f.yaml:1:1: the policy is empty"},
	{"# nothing\n", "f.yaml:1:1: the policy is empty"},
	{"limits: {}\n", "f.yaml:1:1: the key `pale: 1` is missing"},
	{"- pale\n", "f.yaml:1:1: expected a mapping that begins with `pale: 1`"},
	{"pale: 2\n", "f.yaml:1:7: pale: expected 1, not \"2\""},
	{"pale: 1.0\n", "f.yaml:1:7: pale: expected 1, not \"1.0\""},
	{"pale: yes\n", "f.yaml:1:7: pale: expected 1, not \"yes\""},
	{"pale: 1\nlimit: {}\n", "f.yaml:2:1: there is no key \"limit\": did you mean limits?"},
	{"pale: 1\nmemory: 1G\n",
	 "f.yaml:2:1: there is no key \"memory\": did you mean limits.memory?"},
	{"pale: 1\nnetwork: {ask: []}\n",
	 "f.yaml:2:11: there is no key \"ask\" in network: a later version"},
	{"pale: 1\nsecrets: []\n",
	 "f.yaml:2:1: there is no key \"secrets\": did you mean network.secrets?"},
	{"pale: 1\nlimits:\n  memroy: 1G\n",
	 "f.yaml:3:3: there is no key \"memroy\" in limits: did you mean memory?"},
	{"pale: 1\nlimits:\n  timeout: 1\n",
	 "f.yaml:3:3: there is no key \"timeout\" in limits: did you mean wall?"},
	{"pale: 1\n\"limits.wall\": 1s\n", "f.yaml:2:1: there is no key \"limits.wall\""},
	{"pale: 1\n\"files[]\": 1\n", "f.yaml:2:1: there is no key \"files[]\""},
	{"pale: 1\nlimits: {wall: 30sec}\n", "f.yaml:2:16: limits.wall: expected a time such as "
					     "30s, 1.5s, 250ms, 2m or 1h, not \"30sec\": "
					     "did you mean 30s?"},
	{"pale: 1\nlimits: {wall: 1d}\n", "f.yaml:2:16: limits.wall: expected a time such as 30s, "
					  "1.5s, 250ms, 2m or 1h, not \"1d\": "
					  "did you mean 24h?"},
	{"pale: 1\nlimits: {memory: 512 mb}\n", "f.yaml:2:18: limits.memory: expected a size such "
						"as 64MiB, 1.5GiB or 500kB, not \"512 mb\": "
						"did you mean 512MB?"},
	{"pale: 1\nlimits: {memory: 512mib}\n", "f.yaml:2:18: limits.memory: expected a size such "
						"as 64MiB, 1.5GiB or 500kB, not \"512mib\": "
						"did you mean 512MiB?"},
	{"pale: 1\nlimits: {cpus: 50%}\n",
	 "f.yaml:2:16: limits.cpus: expected a number such as 1, 0.5 or 2.25, with at most three "
	 "decimals, not \"50%\": did you mean 0.5?"},
	{"pale: 1\nlimits: {memory: 1KiB}\n", "f.yaml:2:18: limits.memory: \"1KiB\" is too little"},
	{"pale: 1\nlimits: {memory: 0}\n", "f.yaml:2:18: limits.memory: \"0\" is too little"},
	{"pale: 1\nlimits: {memory: 99999999T}\n",
	 "f.yaml:2:18: limits.memory: \"99999999T\" is too much"},
	{"pale: 1\nlimits: {memory: }\n", "f.yaml:2:18: limits.memory: expected a size such as"},
	{"pale: 1\nlimits: {memory: ~}\n", "f.yaml:2:18: limits.memory: expected a size such as"},
	{"pale: 1\nlimits: {memory: [1]}\n", "f.yaml:2:18: limits.memory: expected a size such as"},
	{"pale: 1\nlimits: {wall: 1:30}\n", "f.yaml:2:16: limits.wall: expected a time"},
	{"pale: 1\nlimits: 5\n", "f.yaml:2:9: limits: expected a mapping"},
	{"pale: 1\nlimits:\n", "f.yaml:2:8: limits: expected a mapping"},
	{"pale: 1\nuser: no\n", "f.yaml:2:7: user: expected a user name"},
	{"pale: 1\nuser: ~\n", "f.yaml:2:7: user: expected a user name"},
	{"pale: 1\nuser: nobody\n", "f.yaml:2:7: user: expected a user name"},
	{"pale: 1\nfiles: [{from: ~/x}]\n",
	 "f.yaml:2:9: \"~/x\": ~ and variables are not expanded"},
	{"pale: 1\nfiles: [{from: $HOME/x}]\n", "f.yaml:2:9: \"$HOME/x\": ~ and variables"},
	{"pale: 1\nuser: Root\n", "f.yaml:2:7: user: expected a user name"},
	{"pale: 1\nuser: \"a\\0b\"\n", "f.yaml:2:7: a NUL byte"},
	{"pale: 1\nimage: rootfs\n", "f.yaml:2:8: image: expected `host` or the absolute path"},
	{"pale: 1\nimage: /\n", "f.yaml:2:8: image: expected `host` or the absolute path"},
	{"pale: 1\nisolation: gvisor\n",
	 "f.yaml:2:12: isolation: expected process; not \"gvisor\""},
	{"pale: 1\nisolation: [process, wasm]\n", "f.yaml:2:22: isolation: expected process; not"},
	{"pale: 1\nisolation: []\n", "f.yaml:2:12: isolation: expected one of process; not a list"},
	{"pale: 1\nkernel: {profile: defualt}\n", "f.yaml:2:19: kernel.profile: expected one of "
						  "strict, default, nested; not \"defualt\": did "
						  "you mean default?"},
	{"pale: 1\naudit: {files: false}\n",
	 "f.yaml:2:16: audit.files: expected one of all, writes"},
	{"pale: 1\nbest_effort: memory\n", "f.yaml:2:14: best_effort: expected a list of"},
	{"pale: 1\nbest_effort: [memroy]\n", "f.yaml:2:15: best_effort: expected one of"},
	{"pale: 1\nenv: {A-B: 1}\n", "f.yaml:2:7: env: \"A-B\" is not a variable's name"},
	{"pale: 1\nenv: {1A: 1}\n", "f.yaml:2:7: env: \"1A\" is not a variable's name"},
	{"pale: 1\nenv: {PALE_RUN: 1}\n",
	 "f.yaml:2:7: env: \"PALE_RUN\": names beginning with PALE_"},
	{"pale: 1\nenv: {A: }\n", "f.yaml:2:10: env: \"A\": expected a text; the value is missing"},
	{"pale: 1\nenv: {A: [1]}\n", "f.yaml:2:10: env: \"A\": expected a text"},
	{"pale: 1\nenv: [A=1]\n", "f.yaml:2:6: env: expected a mapping of variables"},
	{"pale: 1\nenv: {A: {hex: 00}}\n", "f.yaml:2:10: env: \"A\": expected a text"},
	{"pale: 1\nenv: {A: {hex: 4}}\n", "f.yaml:2:10: env: \"A\": expected a text"},
	{"pale: 1\nfiles: {path: /a}\n", "f.yaml:2:8: files: expected a list of entries"},
	{"pale: 1\nfiles: [/data]\n", "f.yaml:2:9: files: expected an entry such as"},
	{"pale: 1\nfiles: [{}]\n", "f.yaml:2:9: `path` is missing"},
	{"pale: 1\nfiles: [{path: ../x}]\n", "f.yaml:2:9: \"../x\": \"..\" cannot be part"},
	{"pale: 1\nfiles: [{path: /a/../x}]\n", "f.yaml:2:9: \"/a/../x\": \"..\" cannot be part"},
	{"pale: 1\nfiles: [{path: x, from: y}]\n", "f.yaml:2:9: \"x\": with `from`, the path"},
	{"pale: 1\nfiles: [{path: \"\", from: y}]\n", "f.yaml:2:16: files[].path: expected a path"},
	{"pale: 1\nfiles: [{path: /, from: /srv}]\n",
	 "f.yaml:2:9: \"/\" cannot be a path of `files`"},
	{"pale: 1\nfiles: [{path: //proc/./x, from: /srv}]\n",
	 "f.yaml:2:9: \"/proc/x\" cannot be a"},
	{"pale: 1\nfiles: [{path: /usr/local/x, from: /srv}]\n",
	 "f.yaml:2:9: \"/usr/local/x\" cannot"},
	{"pale: 1\nfiles: [{path: /dev/shm, access: write}]\n",
	 "f.yaml:2:9: \"/dev/shm\" cannot be a"},
	{"pale: 1\nfiles: [{path: /a, from: /proc/1/root}]\n",
	 "f.yaml:2:9: \"/proc/1/root\" of the host"},
	{"pale: 1\nfiles: [{path: /a, access: write, from: x}]\n", "f.yaml:2:9: `from` belongs to"},
	{"pale: 1\nfiles: [{path: /a, access: hide, from: x}]\n", "f.yaml:2:9: `from` belongs to"},
	{"pale: 1\nfiles: [{path: /a, size: 1M}]\n",
	 "f.yaml:2:9: `size` belongs to the access write"},
	{"pale: 1\nfiles: [{path: /a, collect: x}]\n",
	 "f.yaml:2:9: `collect` belongs to the access"},
	{"pale: 1\nfiles: [{path: /a, access: rw}]\n",
	 "f.yaml:2:28: files[].access: expected one of"},
	{"pale: 1\nfiles: [{path: /a, mode: read}]\n",
	 "f.yaml:2:20: there is no key \"mode\" in an entry of files: did you mean access?"},
	{"pale: 1\nuser: a\nuser: b\n", "f.yaml:3:1: the key \"user\" was given before, at line 2"},
	{"pale: 1\nlimits: {wall: 1s, wall: 2s}\n",
	 "f.yaml:2:20: the key \"wall\" was given before"},
	{"pale: 1\nuser: &x a\n", "f.yaml:2:7: anchors"},
	{"pale: 1\nlimits: &x {}\n", "f.yaml:2:9: anchors"},
	{"pale: 1\nuser: *x\n", "f.yaml:2:7: aliases"},
	{"pale: 1\nuser: !!str a\n", "f.yaml:2:7: tags"},
	{"pale: 1\nuser: !a b\n", "f.yaml:2:7: tags"},
	{"pale: 1\n? [a]\n: b\n", "f.yaml:2:3: a key is a word"},
	{"pale: 1\n<<: {user: x}\n", "f.yaml:2:1: there is no key \"<<\": merge keys are not used"},
	{"pale: 1\n---\npale: 1\n", "f.yaml:2:1: a second document"},
	{"pale: 1\n\tuser: a\n", "f.yaml:2:1: this is not YAML"},
	{"pale: 1\nuser: [a\n", "f.yaml:3:1: this is not YAML"},
	{"pale: 1\nuser: \xff\n", "f.yaml:2:7: this is not text in UTF-8"},
	{"[[[[[[[[[[[[[[[[[[[[[[", "f.yaml:1:10: nested too deeply"},
	{"pale: 1\n\"\\e[31m\": 1\n", "f.yaml:2:1: there is no key \"\\x1b[31m\""},
};

static const struct wrong wrong_json[] = {
	{"", "f.json:1:"},
	{"pale: 1\n", "f.json:1:4: this is not JSON"},
	{"{\"pale\": 1,}", "f.json:1:12: this is not JSON"},
	{"{\"pale\": 1} x", "f.json:1:13: this is not JSON"},
	{"{'pale': 1}", "f.json:1:2: this is not JSON"},
	{"{\"pale\": 1, // no comments\n\"user\": \"a\"}", "f.json:1:13: this is not JSON"},
	{"{\"pale\": 1, \"pale\": 1}", "f.json:1:18: this is not JSON: duplicate object key"},
	{"[1]", "f.json:1:1: expected a mapping"},
	{"{\n \"pale\": 1,\n \"limits\": {\"x\\\"\\u0041\": [], \"wall\": \"1x\"}}",
	 "f.json:3:13: there is no key \"x\\\"A\" in limits"},
	{"{\"pale\": 1,\n \"limits\": {\"cpus\": 0.5, \"wall\" : \"1x\"}}",
	 "f.json:2:35: limits.wall: expected a time"},
	{"{\"pale\": 1,\n \"env\": {\"A\": \"\xc3\xa9\xc3\xa9\", \"B\": null}}",
	 "f.json:2:26: env: \"B\": expected a text"},
	{"{\"pale\": 1, \"user\": false}", "f.json:1:21: user: expected a user name"},
	{"{\"pale\": 1, \"limits\": {\"processes\": 1e2}}",
	 "f.json:1:37: limits.processes: expected a"},
	{"{\"pale\": 1, \"user\": \"a\\u0000b\"}", "f.json:1:"},
};

static void check_wrong(const struct wrong *rows, size_t n, bool json)
{
	unsigned failed = 0;

	for (size_t i = 0; i < n; i++) {
		_cleanup_policy_ struct policy *p = NULL;
		char before[65], after[65];
		struct pale_err err = {0};

		assert_int_equal(policy_new(&p, &err), 0);
		assert_int_equal(policy_set(p, "limits.memory", "77MiB", "--memory", &err), 0);
		assert_int_equal(policy_digest(p, before, &err), 0);
		if (load_text(p, rows[i].text, json, &err) != -PALE_E_POLICY)
			fail_msg("taken: %s", rows[i].text);
		if (!str_starts(err.message, rows[i].message)) {
			print_error("%s\ngave %s\nnot  %s\n", rows[i].text, err.message,
				    rows[i].message);
			failed++;
		}
		assert_string_equal(err.stage, "policy");
		assert_int_equal(policy_digest(p, after, &err), 0);
		assert_string_equal(before, after);
	}
	assert_int_equal(failed, 0);
}

static void test_wrong_yaml(void **state)
{
	(void)state;
	check_wrong(wrong_yaml, ARRAY_SIZE(wrong_yaml), false);
}

static void test_wrong_json(void **state)
{
	(void)state;
	check_wrong(wrong_json, ARRAY_SIZE(wrong_json), true);
}

/* A text with two faults, the second of which is in a key that would have loosened the policy. */
static void count_reports(const struct pale_err *e, void *data)
{
	assert_true(str_starts(e->message, "/") && strstr(e->message, "policy.yaml:"));
	++*(unsigned *)data;
}

static void test_all_errors_are_told(void **state)
{
	char dir[] = "/tmp/pale-policy.XXXXXX", name[64];
	_cleanup_policy_ struct policy *p = NULL;
	struct pale_err err = {0};
	unsigned n = 0;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/policy.yaml", dir);
	f = fopen(name, "we");
	assert_non_null(f);
	fputs("pale: 1\nlimits:\n  memory: 64TiB\n  wal: 3\n  cpu: x\nfoo: 1\n", f);
	fclose(f);
	assert_int_equal(policy_new(&p, &err), 0);
	assert_int_equal(policy_load_report(p, name, count_reports, &n, &err), -PALE_E_POLICY);
	assert_int_equal(n, 3);
	assert_int_equal(p->limits.memory_bytes, 512u << 20);
	unlink(name);
	rmdir(dir);
}

static const char good_yaml[] = "pale: 1\n"
				"user: \"no\"\n"
				"files:\n"
				"  - {path: /data/a, from: ./a/../b, access: read}\n"
				"  - {path: ., access: overlay}\n"
				"  - {path: /out//, access: write, size: 64MiB, collect: out}\n"
				"  - {path: ./.env, access: hide}\n"
				"  - {from: /srv/x, path: {hex: 2fff}}\n"
				"limits: {cpus: 0.5, wall: 90, memory: 1.5GiB}\n"
				"best_effort: [memory, landlock]\n"
				"env: {X: 1, Y: yes, Z: \"\", LD_PRELOAD: /x.so}\n";

static void check_good(const struct policy *p)
{
	static const struct policy_file want[] = {
		{"/data/a", "/base/a/../b", NULL, ACCESS_READ, 0, NULL},
		{"/base", "/base", NULL, ACCESS_OVERLAY, 0, NULL},
		{"/out", NULL, "/base/out", ACCESS_WRITE, 64u << 20, NULL},
		{"/base/.env", NULL, NULL, ACCESS_HIDE, 0, NULL},
		{"/\xff", "/srv/x", NULL, ACCESS_READ, 0, NULL},
	};
	static const struct policy_env env[] = {
		{"X", "1"}, {"Y", "yes"}, {"Z", ""}, {"LD_PRELOAD", "/x.so"}};

	assert_string_equal(p->user, "no");
	assert_int_equal(p->nfiles, ARRAY_SIZE(want));
	for (size_t i = 0; i < p->nfiles; i++) {
		assert_string_equal(p->files[i].path, want[i].path);
		assert_string_equal(p->files[i].from ? p->files[i].from : "-",
				    want[i].from ? want[i].from : "-");
		assert_string_equal(p->files[i].collect ? p->files[i].collect : "-",
				    want[i].collect ? want[i].collect : "-");
		assert_int_equal(p->files[i].access, want[i].access);
		assert_int_equal(p->files[i].size_bytes, want[i].size_bytes);
	}
	assert_int_equal(p->limits.cpus_milli, 500);
	assert_int_equal(p->limits.wall_ms, 90000);
	assert_int_equal(p->limits.memory_bytes, UINT64_C(3) << 29);
	assert_int_equal(p->limits.cpu_ms, 30000);
	assert_int_equal(p->best_effort, ITEM_MEMORY | ITEM_LANDLOCK);
	assert_int_equal(p->nenv, ARRAY_SIZE(env));
	for (size_t i = 0; i < p->nenv; i++) {
		bool found = false;

		for (size_t k = 0; k < ARRAY_SIZE(env); k++)
			found = found || (strcmp(p->env[i].name, env[k].name) == 0 &&
					  strcmp(p->env[i].value, env[k].value) == 0);
		assert_true(found);
	}
}

/* The canonical text is the policy: loaded again, it means the same and is written the same. */
static void test_good_and_canonical(void **state)
{
	_cleanup_policy_ struct policy *p = NULL, *again = NULL, *copy = NULL, *third = NULL;
	_cleanup_free_ char *text = NULL, *text2 = NULL;
	char digest[65], digest2[65];
	struct pale_err err;

	(void)state;
	assert_int_equal(policy_new(&p, &err), 0);
	if (load_text(p, good_yaml, false, &err) < 0)
		fail_msg("%s", err.message);
	check_good(p);
	assert_string_equal(p->files[1].where, "f.yaml:5:5");
	assert_int_equal(policy_check(p, &err), 0);
	assert_int_equal(policy_to_json(p, &text, &err), 0);
	assert_int_equal(policy_new(&again, &err), 0);
	if (load_text(again, text, true, &err) < 0)
		fail_msg("%s", err.message);
	check_good(again);
	assert_int_equal(policy_to_json(again, &text2, &err), 0);
	assert_string_equal(text, text2);
	assert_int_equal(policy_digest(p, digest, &err), 0);
	assert_int_equal(policy_digest(again, digest2, &err), 0);
	assert_string_equal(digest, digest2);
	assert_int_equal(strlen(digest), 64);
	assert_int_equal(policy_copy(&copy, p, &err), 0);
	check_good(copy);
	assert_int_equal(policy_set(copy, "limits.processes", "7", NULL, &err), 0);
	assert_int_equal(policy_digest(copy, digest2, &err), 0);
	assert_string_not_equal(digest, digest2);
	/* Its lists are its own. */
	assert_int_equal(policy_set(copy, "session.imports", "json", NULL, &err), 0);
	assert_int_equal(policy_copy(&third, copy, &err), 0);
	assert_int_equal(policy_set(third, "session.imports", "csv,os.path", NULL, &err), 0);
	assert_null(p->session.imports);
	assert_string_equal(copy->session.imports[0], "json");
	assert_null(copy->session.imports[1]);
	assert_string_equal(third->session.imports[2], "os.path");
}

/* Names with any bytes, through the canonical text. */
static void test_any_bytes(void **state)
{
	static const char *const names[] = {
		"/srv/a b",	 "/srv/\x7f",	      "/srv/\xf0\x9f\x98\x80",
		"/srv/\xc3\x28", "/srv/\"\\\n\t{}:",  "/srv/-",
		"/srv/~",	 "/srv/\xe2\x80\xae", "/srv/\xed\xa0\x80",
		"/srv/\x01",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_policy_ struct policy *p = NULL, *again = NULL, *third = NULL;
		_cleanup_free_ char *text = NULL, *yaml = NULL;
		struct pale_err err;

		assert_int_equal(policy_new(&p, &err), 0);
		assert_int_equal(
			policy_add_file(p, ACCESS_READ, names[i], names[i], NULL, 0, "--ro", &err),
			0);
		assert_int_equal(policy_add_env(p, "V", names[i], &err), 0);
		assert_int_equal(policy_to_json(p, &text, &err), 0);
		assert_int_equal(policy_new(&again, &err), 0);
		if (load_text(again, text, true, &err) < 0)
			fail_msg("%s", err.message);
		assert_string_equal(again->files[0].path, names[i]);
		assert_string_equal(again->files[0].from, names[i]);
		assert_string_equal(again->env[0].value, names[i]);
		/* Likewise as YAML, which is also safe to show. */
		assert_int_equal(policy_to_yaml(p, &yaml, &err), 0);
		assert_null(strpbrk(yaml, "\x01\x7f\x1b"));
		assert_null(strstr(yaml, "\xe2\x80\xae"));
		assert_int_equal(policy_new(&third, &err), 0);
		if (load_text(third, yaml, false, &err) < 0)
			fail_msg("%s\n%s", err.message, yaml);
		assert_string_equal(third->files[0].path, names[i]);
		assert_string_equal(third->env[0].value, names[i]);
	}
}

static void test_merge(void **state)
{
	_cleanup_policy_ struct policy *p = NULL;
	struct pale_err err;

	(void)state;
	assert_int_equal(policy_new(&p, &err), 0);
	assert_int_equal(load_text(p, good_yaml, false, &err), 0);
	assert_int_equal(load_text(p,
				   "pale: 1\nuser: other\nlimits: {wall: 1s}\nbest_effort: [cpus]\n"
				   "files: [{path: /srv/y}]\nenv: {X: 2, W: 3}\n",
				   false, &err),
			 0);
	assert_string_equal(p->user, "other");
	assert_int_equal(p->limits.wall_ms, 1000);
	assert_int_equal(p->limits.cpus_milli, 500); /* untouched */
	assert_int_equal(p->best_effort, ITEM_MEMORY | ITEM_LANDLOCK | ITEM_CPUS);
	assert_int_equal(p->nfiles, 6);
	assert_string_equal(p->files[5].from, "/srv/y");
	assert_int_equal(p->nenv, 5);
	assert_string_equal(p->env[0].value, "2");
}

static void test_set(void **state)
{
	static const struct {
		const char *key, *value, *message;
	} rows[] = {
		{"limits.memroy", "1G",
		 "--set: there is no key \"limits.memroy\": did you mean memory?"},
		{"limits", "1", "--set: limits: expected a mapping"},
		{"files", "/x", "--set: files cannot be set as one text"},
		{"files[].path", "/x", "--set: there is no key \"files[].path\""},
		{"env", "A=1", "--set: env cannot be set as one text"},
		{"env.A-B", "1", "--set: env: \"A-B\" is not a variable's name"},
		{"pale", "2", "--set: pale: expected 1"},
		{"best_effort", "memory,x", "--set: best_effort: expected one of"},
		{"network", "host", "--set: network: expected a mapping"},
		{"network.ask", "x", "--set: there is no key \"network.ask\": a later version"},
		{"network.allow", "x", "--set: network.allow cannot be set as one text"},
		{"network.exempt", "a.example,b..example",
		 "--set: network.exempt: expected a host"},
		{"", "", "--set: there is no key \"\""},
	};
	_cleanup_policy_ struct policy *p = NULL;
	char before[65], after[65];
	struct pale_err err;

	(void)state;
	assert_int_equal(policy_new(&p, &err), 0);
	assert_int_equal(policy_digest(p, before, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(policy_set(p, rows[i].key, rows[i].value, "--set", &err),
				 -PALE_E_POLICY);
		if (!str_starts(err.message, rows[i].message))
			fail_msg("%s", err.message);
	}
	assert_int_equal(policy_digest(p, after, &err), 0);
	assert_string_equal(before, after);
	assert_int_equal(policy_set(p, "env.A", "1=2", NULL, &err), 0);
	assert_string_equal(p->env[0].value, "1=2");
	assert_int_equal(policy_set(p, "best_effort", "memory,cpus", NULL, &err), 0);
	assert_int_equal(p->best_effort, ITEM_MEMORY | ITEM_CPUS);
}

static void test_check(void **state)
{
	static const struct {
		const char *files;
		const char *message; /* NULL: good */
	} rows[] = {
		{"[{path: /srv, access: read}, {path: /srv/.env, access: hide}]", NULL},
		{"[{path: /srv/.env, access: hide}, {path: /srv, access: read}]", NULL},
		{"[{path: /usr/bin/gcc, access: hide}]", NULL},
		{"[{path: /srv, access: read}, {path: /srvx, access: hide}]",
		 "f.yaml:2:37: \"/srvx\" hides nothing"},
		{"[{path: /a, access: write, collect: o}, {path: /b, access: write, collect: ./o}]",
		 "f.yaml:2:48: two entries are collected to \"/base/o\" (see f.yaml:2:9)"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_policy_ struct policy *p = NULL;
		_cleanup_free_ char *text = NULL;
		struct pale_err err;

		assert_int_equal(policy_new(&p, &err), 0);
		assert_true(asprintf(&text, "pale: 1\nfiles: %s\n", rows[i].files) > 0);
		if (load_text(p, text, false, &err) < 0)
			fail_msg("%s", err.message);
		assert_int_equal(policy_check(p, &err), rows[i].message ? -PALE_E_POLICY : 0);
		if (rows[i].message && !str_starts(err.message, rows[i].message))
			fail_msg("%s", err.message);
	}
}

static void test_widened_lists(void **state)
{
	_cleanup_policy_ struct policy *file = NULL, *flags = NULL, *other = NULL;
	char lines[8][160];
	struct pale_err err;

	(void)state;
	assert_int_equal(policy_new(&file, &err), 0);
	assert_int_equal(load_text(file, good_yaml, false, &err), 0);
	assert_int_equal(policy_copy(&flags, file, &err), 0);
	assert_int_equal(policy_widened(file, flags, lines, 8), 0);
	assert_int_equal(
		policy_add_file(flags, ACCESS_HIDE, "/base/x", NULL, NULL, 0, "--hide", &err), 0);
	assert_int_equal(policy_widened(file, flags, lines, 8), 0);
	assert_int_equal(
		policy_add_file(flags, ACCESS_READ, NULL, "/root/\x1b", NULL, 0, "--ro", &err), 0);
	assert_int_equal(policy_add_env(flags, "TOKEN", "secret", &err), 0);
	assert_int_equal(policy_widened(file, flags, lines, 8), 2);
	assert_string_equal(lines[0], "files: read /root/\\x1b from /root/\\x1b");
	assert_string_equal(lines[1], "env: TOKEN is added");
	assert_int_equal(policy_widened(file, flags, lines, 1), 1);
	/* The other way round: an entry less, a hidden path more. */
	assert_int_equal(policy_widened(flags, file, lines, 8), 1);
	assert_string_equal(lines[0], "files: /base/x is no longer hidden");
	/* What cannot be compared is told when it is another. */
	assert_int_equal(policy_set(file, "image", "/srv/root", NULL, &err), 0);
	assert_int_equal(policy_widened(flags, file, lines, 8), 2);
	assert_string_equal(lines[0], "image: /srv/root instead of host");
	/* A protection that is switched off, but not one that is switched on. */
	assert_int_equal(policy_set(file, "image", "host", NULL, &err), 0);
	assert_int_equal(policy_copy(&other, file, &err), 0);
	assert_int_equal(policy_set(other, "kernel.core_scheduling", "true", NULL, &err), 0);
	assert_int_equal(policy_set(other, "kernel.speculation", "strict", NULL, &err), 0);
	assert_int_equal(policy_widened(file, other, lines, 8), 0);
	assert_int_equal(policy_widened(other, file, lines, 8), 2);
	assert_string_equal(lines[0], "kernel.speculation: default instead of strict");
	assert_string_equal(lines[1], "kernel.core_scheduling: false instead of true");
}

static void test_shipped(void **state)
{
	_cleanup_policy_ struct policy *defaults = NULL;
	char lines[16][160];
	struct pale_err err;
	size_t n = 0;

	(void)state;
	assert_int_equal(policy_new(&defaults, &err), 0);
	for (const struct policy_shipped *s = policy_shipped; s->name; s++, n++) {
		_cleanup_policy_ struct policy *p = NULL;

		assert_int_equal(policy_new(&p, &err), 0);
		if (policy_load(p, s->name, &err) < 0 || policy_check(p, &err) < 0)
			fail_msg("%s", err.message);
		assert_int_equal(p->best_effort, 0);
		if (strcmp(s->name, "compute") == 0) {
			assert_int_equal(policy_widened(defaults, p, lines, 16), 0);
			assert_int_equal(policy_widened(p, defaults, lines, 16), 0);
		} else if (strcmp(s->name, "strict") == 0) {
			assert_int_equal(policy_widened(defaults, p, lines, 16), 0);
			assert_int_equal(p->profile, PROFILE_STRICT);
			assert_int_equal(p->watch_files, WATCH_ALL);
		} else if (strcmp(s->name, "analysis") == 0) {
			assert_int_equal(p->nfiles, 1);
			assert_string_equal(p->files[0].path, "/out");
			assert_int_equal(p->files[0].access, ACCESS_WRITE);
			assert_int_equal(p->files[0].size_bytes, 64u << 20);
			assert_true(str_ends(p->files[0].collect, "/out"));
			assert_int_equal(p->watch_files, WATCH_ALL);
		} else if (strcmp(s->name, "workspace") == 0) {
			_cleanup_free_ char *cwd = realpath(".", NULL);

			assert_int_equal(p->nfiles, 1);
			assert_int_equal(p->files[0].access, ACCESS_OVERLAY);
			assert_string_equal(p->files[0].path, cwd);
			assert_int_equal(p->limits.wall_ms, 600000);
		} else if (p->network.nrules) {
			/* They are to change nothing anywhere: each host with methods. */
			for (size_t i = 0; i < p->network.nrules; i++)
				assert_true(p->network.rules[i].deny ||
					    p->network.rules[i].methods);
			assert_int_equal(p->network.nsecrets, 0);
		}
	}
	assert_int_equal(n, 8);
	assert_int_equal(policy_load(defaults, "anlysis", &err), -PALE_E_NOTFOUND);
	assert_non_null(strstr(err.message, "did you mean analysis?"));
}

/* Relative paths with ".." from the command line are followed as the kernel would. */
static void test_dotdot(void **state)
{
	char dir[] = "/tmp/pale-policy.XXXXXX", path[64], expected[64];
	_cleanup_policy_ struct policy *p = NULL;
	struct pale_err err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/d", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/l", dir);
	assert_int_equal(symlink("d", path), 0);
	assert_int_equal(policy_new(&p, &err), 0);
	snprintf(path, sizeof(path), "%s/l/../x.csv", dir);
	assert_int_equal(policy_add_file(p, ACCESS_READ, NULL, path, NULL, 0, "--ro", &err), 0);
	snprintf(expected, sizeof(expected), "%s/x.csv", dir);
	assert_string_equal(p->files[0].path, expected);
	assert_string_equal(p->files[0].from, path);
	snprintf(path, sizeof(path), "%s/none/../x.csv", dir);
	assert_int_equal(policy_add_file(p, ACCESS_READ, NULL, path, NULL, 0, "--ro", &err),
			 -PALE_E_POLICY);
	assert_true(str_starts(err.message, "--ro: cannot follow"));
	snprintf(path, sizeof(path), "%s/l", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/d", dir);
	rmdir(path);
	rmdir(dir);
}

/* As many members, bytes and levels as are allowed cost little; more are refused. */
static void test_caps(void **state)
{
	_cleanup_policy_ struct policy *p = NULL;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct pale_err err;

	(void)state;
	assert_int_equal(policy_new(&p, &err), 0);
	buf_adds(&b, "pale: 1\nenv:\n");
	for (int i = 0; i < 3000; i++)
		buf_addf(&b, "  V%d: x\n", i);
	assert_int_equal(load_text(p, b.data, false, &err), -PALE_E_POLICY);
	assert_non_null(strstr(err.message, ": more than 2048 members"));
	for (int i = 0; i < 40000; i++)
		buf_adds(&b, "# more\n");
	assert_int_equal(load_text(p, b.data, false, &err), -PALE_E_POLICY);
	assert_non_null(strstr(err.message, "longer than 262144 bytes"));
	assert_int_equal(p->nenv, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_yaml),
		cmocka_unit_test(test_wrong_json),
		cmocka_unit_test(test_all_errors_are_told),
		cmocka_unit_test(test_good_and_canonical),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_widened_lists),
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_dotdot),
		cmocka_unit_test(test_caps),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
