/* The network part of a policy: what an entry means, what is refused as an entry, and what the
 * rules answer. */
#include "policy/policy.h"
#include "base/str.h"
#include <arpa/inet.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static int load_text(struct policy *p, const char *network, struct pale_err *err)
{
	_cleanup_free_ char *text = NULL;

	assert_true(asprintf(&text, "pale: 1\nnetwork:\n%s", network) > 0);
	return policy_load_memory(p, text, strlen(text), "f.yaml", "/base", false, err);
}

static struct policy *load(const char *network)
{
	struct policy *p = NULL;
	struct pale_err err;

	assert_int_equal(policy_new(&p, &err), 0);
	if (load_text(p, network, &err) < 0)
		fail_msg("%s\n%s", network, err.message);
	return p;
}

/* Each rule of a policy as text, one a line. */
static void check_rules(const char *network, const char *want)
{
	_cleanup_policy_ struct policy *p = load(network);
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	char text[NETWORK_RULE_TEXT];

	for (size_t i = 0; i < p->network.nrules; i++)
		buf_addf(&b, "%s%s\n", network_rule_text(&p->network.rules[i], text),
			 p->network.rules[i].intercept ? " (intercept)" : "");
	assert_string_equal(b.data ? b.data : "", want);
}

static void test_what_is_left_out(void **state)
{
	(void)state;
	check_rules("  allow: [{host: a.example}]\n", "allow tls a.example:443\n");
	check_rules("  allow: [{host: A.Example.}]\n", "allow tls a.example:443\n");
	check_rules("  allow: [{host: a.example, port: 80}]\n", "allow http a.example:80\n");
	check_rules("  allow: [{host: a.example, port: 22}]\n", "allow tcp a.example:22\n");
	check_rules("  allow: [{host: a.example, protocol: http}]\n", "allow http a.example:80\n");
	check_rules("  allow: [{host: a.example, protocol: [http, tls]}]\n",
		    "allow tls,http a.example:443,80\n");
	/* 443 and 80 together do not allow clear HTTP on 443. */
	check_rules("  allow: [{host: a.example, ports: [22, 80, 443]}]\n",
		    "allow tls a.example:443\nallow http a.example:80\nallow tcp a.example:22\n");
	check_rules("  allow: [{host: a.example, port: 8443, protocol: tls}]\n",
		    "allow tls a.example:8443\n");
	check_rules(
		"  allow: [{host: a.example, ports: [8000-8010, 9000], protocol: [tcp, tls]}]\n",
		"allow tls,tcp a.example:8000-8010,9000\n");
	check_rules("  allow: [{address: 192.0.2.0/24, port: 5432, protocol: tcp}]\n",
		    "allow tcp 192.0.2.0/24 port 5432\n");
	check_rules("  allow: [{host: a.example, address: 10.0.0.0/8}]\n",
		    "allow tls a.example in 10.0.0.0/8 port 443\n");
	check_rules("  allow: [{host: a.example, methods: [get, HEAD], paths: /v1/**}]\n",
		    "allow tls a.example:443 GET,HEAD /v1/** (intercept)\n");
	check_rules("  allow: [{host: a.example, methods: get, protocol: http}]\n",
		    "allow http a.example:80 GET\n");
	check_rules("  allow: [{host: a.example, intercept: true}]\n",
		    "allow tls a.example:443 (intercept)\n");
	check_rules("  allow: [{host: a.example, intercept: false}]\n",
		    "allow tls a.example:443\n");
	/* A rule that denies restricts nothing that it does not say; TCP is what TLS runs over. */
	check_rules("  deny: [{host: a.example}]\n", "deny a.example\n");
	check_rules("  deny: [{host: a.example, port: 22}]\n", "deny a.example:22\n");
	check_rules("  deny: [{host: a.example, protocol: tls}]\n", "deny tls a.example\n");
	check_rules("  deny: [{host: a.example, protocol: tcp}]\n",
		    "deny tls,http,tcp a.example\n");
	check_rules("  deny: [{address: 10.0.0.0/8}]\n", "deny 10.0.0.0/8\n");
	/* Those that allow come first, wherever they are written. */
	check_rules(
		"  deny: [{host: a.example}]\n  allow: [{host: b.example}, {host: c.example}]\n",
		"allow tls b.example:443\nallow tls c.example:443\ndeny a.example\n");
}

static const struct {
	const char *text, *message;
} wrong[] = {
	{"  allow: [{port: 443}]\n", "f.yaml:3:11: `host` is missing (or `address`, or `preset`)"},
	{"  deny: [{port: 443}]\n", "f.yaml:3:10: `host` is missing (or `address`)"},
	{"  allow: [a.example]\n", "f.yaml:3:11: network.allow: expected an entry such as {host"},
	{"  allow: a.example\n", "f.yaml:3:10: network.allow: expected a list of rules"},
	{"  allow: {host: a.example}\n", "f.yaml:3:10: network.allow: expected a list of rules"},
	{"  allow: [{host: a.example, prot: tls}]\n",
	 "f.yaml:3:29: there is no key \"prot\" in an entry of network.allow: did you mean port?"},
	{"  allow: [{domain: a.example}]\n", "f.yaml:3:12: there is no key \"domain\" in an entry "
					     "of network.allow: did you mean host?"},
	{"  allowed_domains: [a.example]\n",
	 "f.yaml:3:3: there is no key \"allowed_domains\" in network: did you mean allow?"},
	{"  publish: [80]\n", "f.yaml:3:13: network.publish: expected an entry such as {port"},
	{"  publish: [{host_port: 80}]\n", "f.yaml:3:13: `port` is missing"},
	{"  publish: [{port: 0}]\n", "f.yaml:3:20: network.publish[].port: \"0\" is too"},
	{"  publish: [{port: 65536}]\n", "f.yaml:3:20: network.publish[].port: \"65536\" is too"},
	{"  publish: [{port: 1-2}]\n", "f.yaml:3:20: network.publish[].port: expected"},
	{"  publish: [{port: 80, host_port: 80, path: ./x}]\n",
	 "f.yaml:3:13: `host_port` and `path` exclude each other"},
	{"  publish: [{port: 80, path: /}]\n", "f.yaml:3:13: `path`: / is a directory"},
	{"  publish: [{port: 80, path: /tmp/"
	 "0123456789012345678901234567890123456789012345678901234567890123456789"
	 "0123456789012345678901234567890123456789}]\n",
	 "f.yaml:3:13: \"/tmp/0"},
	{"  ssh_agent: [a.example]\n",
	 "f.yaml:3:14: network.ssh_agent: expected a mapping of keys"},
	{"  ssh_agent: {hosts: ['*.a.example']}\n",
	 "f.yaml:3:23: network.ssh_agent.hosts: expected a host name"},
	{"  allow: [{host: \"https://a.example/x\"}]\n",
	 "f.yaml:3:18: network.allow[].host: expected a host name, `*.` before it for all names "
	 "below it, not \"https://a.example/x\": only the name, without https://"},
	{"  allow: [{host: \"a.example:443\"}]\n",
	 "f.yaml:3:18: network.allow[].host: expected a host name, `*.` before it for all names "
	 "below it, not \"a.example:443\": a port is written with `port`"},
	{"  allow: [{host: a.example/v1}]\n",
	 "f.yaml:3:18: network.allow[].host: expected a host name, `*.` before it for all names "
	 "below it, not \"a.example/v1\": a path is written with `paths`"},
	{"  allow: [{host: 192.0.2.1}]\n",
	 "f.yaml:3:18: network.allow[].host: expected a host name, `*.` before it for all names "
	 "below it, not \"192.0.2.1\": an address is written with `address`"},
	{"  allow: [{host: \"*\"}]\n",
	 "f.yaml:3:18: network.allow[].host: expected a host name, `*.` before it for all names "
	 "below it, not \"*\": there is no rule for all hosts"},
	{"  allow: [{host: a.*.example}]\n",
	 "f.yaml:3:18: network.allow[].host: expected a host name, `*.` before it for all names "
	 "below it, not \"a.*.example\": `*.` stands for whole labels"},
	{"  allow: [{host: m\xc3\xbcnchen.example}]\n",
	 "f.yaml:3:18: network.allow[].host: expected a host name, `*.` before it for all names "
	 "below it, not \"m\xc3\xbcnchen.example\": write it in its ASCII form"},
	{"  allow: [{host: 2130706433}]\n", "f.yaml:3:18: network.allow[].host: expected a host"},
	{"  allow: [{host: no}]\n", "f.yaml:3:18: network.allow[].host: expected a host"},
	{"  allow: [{host: }]\n", "f.yaml:3:18: network.allow[].host: expected a host"},
	{"  allow: [{address: 10.0.0.1/8}]\n", "f.yaml:3:21: network.allow[].address: expected an"},
	{"  allow: [{address: a.example}]\n", "f.yaml:3:21: network.allow[].address: expected an"},
	{"  allow: [{host: a.example, port: 0}]\n", "f.yaml:3:35: network.allow[].port: expected"},
	{"  allow: [{host: a.example, port: 65536}]\n", "f.yaml:3:35: network.allow[].port: expec"},
	{"  allow: [{host: a.example, port: 9-8}]\n",
	 "f.yaml:3:35: network.allow[].port: expected"},
	{"  allow: [{host: a.example, port: https}]\n", "f.yaml:3:35: network.allow[].port: expec"},
	{"  allow: [{host: a.example, port: [80]}]\n", "f.yaml:3:35: network.allow[].port: expect"},
	{"  allow: [{host: a.example, port: 80, ports: 443}]\n",
	 "f.yaml:3:11: `port` and `ports` exclude each other"},
	{"  allow: [{host: a.example, port: 8080}]\n",
	 "f.yaml:3:11: port 8080 needs `protocol`: tls, http, tcp or udp"},
	{"  allow: [{host: a.example, ports: [443, 8000-8010]}]\n",
	 "f.yaml:3:11: port 8000-8010 needs `protocol`"},
	{"  allow: [{host: a.example, port: 80-443}]\n",
	 "f.yaml:3:11: port 80-443 needs `protocol`"},
	{"  allow: [{host: a.example, protocol: tcp}]\n",
	 "f.yaml:3:11: a rule for tcp or udp says its ports"},
	{"  allow: [{host: a.example, protocol: https}]\n",
	 "f.yaml:3:39: network.allow[].protocol: expected one of tls, http, tcp, udp; not"},
	{"  allow: [{host: a.example, methods: [GET POST]}]\n",
	 "f.yaml:3:39: network.allow[].methods: expected an HTTP method"},
	{"  allow: [{host: a.example, paths: v1}]\n",
	 "f.yaml:3:36: network.allow[].paths: expected a path that begins with `/`"},
	{"  allow: [{host: a.example, paths: /a/../b}]\n",
	 "f.yaml:3:36: network.allow[].paths: exp"},
	{"  allow: [{host: a.example, paths: //a}]\n", "f.yaml:3:36: network.allow[].paths: exp"},
	{"  allow: [{host: a.example, paths: /a;b}]\n", "f.yaml:3:36: network.allow[].paths: exp"},
	{"  allow: [{host: a.example, paths: /a%2fb}]\n",
	 "f.yaml:3:36: network.allow[].paths: exp"},
	{"  allow: [{host: a.example, paths: /a%2Ab}]\n",
	 "f.yaml:3:36: network.allow[].paths: exp"},
	{"  allow: [{host: a.example, paths: /a%}]\n", "f.yaml:3:36: network.allow[].paths: exp"},
	{"  allow: [{host: a.example, paths: \"*x\"}]\n",
	 "f.yaml:3:36: network.allow[].paths: exp"},
	{"  allow: [{host: a.example, paths: /v1?x}]\n", "f.yaml:3:36: network.allow[].paths: exp"},
	{"  allow: [{host: a.example, port: 22, methods: GET}]\n",
	 "f.yaml:3:11: `methods` cannot be checked in tcp and udp"},
	{"  allow: [{host: a.example, ports: [22, 443], paths: /}]\n",
	 "f.yaml:3:11: `paths` cannot be checked in tcp and udp"},
	{"  allow: [{host: a.example, port: 80, intercept: true}]\n",
	 "f.yaml:3:11: `intercept` belongs to the protocol tls"},
	{"  allow: [{host: a.example, methods: GET, intercept: false}]\n",
	 "f.yaml:3:11: `methods` of TLS can be checked only in what is intercepted"},
	{"  allow: [{host: a.example, intercept: yes}]\n",
	 "f.yaml:3:40: network.allow[].intercept: expected true or false, not \"yes\""},
	{"  allow: [{host: \"*.a.example\", port: 53, protocol: udp}]\n",
	 "f.yaml:3:11: udp is for single hosts"},
	{"  allow: [{address: 192.0.2.0/24, port: 53, protocol: udp}]\n",
	 "f.yaml:3:11: udp is for single addresses"},
	{"  allow: [{host: a.example, port: 1-9, protocol: udp}]\n",
	 "f.yaml:3:11: a rule for udp has at most 8 ports, not 9"},
	{"  allow: [{host: a.example, rate: 1}]\n",
	 "f.yaml:3:35: network.allow[].rate: \"1\" is too"},
	{"  allow: [{host: a.example, reason: \"\"}]\n",
	 "f.yaml:3:37: network.allow[].reason: exp"},
	{"  allow: [{preset: pypy}]\n",
	 "f.yaml:3:11: there is no preset \"pypy\": did you mean pypi?"},
	{"  allow: [{preset: nosuchthing}]\n",
	 "f.yaml:3:11: there is no preset \"nosuchthing\"; there"},
	{"  allow: [{preset: ./nosuchthing.yaml}]\n",
	 "f.yaml:3:11: cannot open the preset \"/base/nosuchthing.yaml\""},
	{"  allow: [{preset: pypi, port: 80}]\n",
	 "f.yaml:3:11: ports and protocols are the preset's own: leave `port` out"},
	{"  allow: [{preset: debian, intercept: true}]\n",
	 "f.yaml:3:11: `intercept` belongs to the protocol tls"},
	{"  allow: [{address: 192.0.2.1, methods: GET}]\n",
	 "f.yaml:3:11: TLS to an address cannot be opened, so that `methods` could not be"},
	{"  allow: [{address: 192.0.2.1, intercept: true}]\n",
	 "f.yaml:3:11: TLS to an address cannot be opened, so that `intercept` could not be"},
	{"  deny: [{address: 192.0.2.1, paths: /x}]\n",
	 "f.yaml:3:10: `paths` belongs to rules for hosts"},
	{"  deny: [{host: a.example, address: 192.0.2.1}]\n",
	 "f.yaml:3:10: a rule that denies has `host` or `address`"},
	{"  deny: [{preset: pypi}]\n", "f.yaml:3:10: `host` is missing"},
	{"  deny: [{host: a.example, preset: x}]\n",
	 "f.yaml:3:10: `preset` belongs to rules that allow"},
	{"  deny: [{host: a.example, rate: 1MiB}]\n", "f.yaml:3:10: `rate` belongs to rules that"},
	{"  deny: [{host: a.example, bytes: 1MiB}]\n", "f.yaml:3:10: `bytes` belongs to rules"},
	{"  deny: [{host: a.example, intercept: true}]\n", "f.yaml:3:10: `intercept` belongs to"},
	{"  secrets: [{env: K, hosts: a.example, header: x}]\n",
	 "f.yaml:3:13: `value_from` is missing"},
	{"  secrets: [{env: K, value_from: \"env:X\", header: x}]\n",
	 "f.yaml:3:13: `hosts` is missing"},
	{"  secrets: [{value_from: \"env:X\", hosts: a.example, header: x}]\n",
	 "f.yaml:3:13: `env` is missing (or `file`)"},
	{"  secrets: [{env: K, value_from: \"env:X\", hosts: a.example}]\n",
	 "f.yaml:3:13: one of `header`, `query` and `basic: true` says where the secret goes"},
	{"  secrets: [{env: K, value_from: \"env:X\", hosts: a.example, header: x, query: q}]\n",
	 "f.yaml:3:13: one of `header`, `query` and `basic: true` says where the secret goes, not"},
	{"  secrets: [{env: K, value_from: \"env:X\", hosts: a.example, basic: false}]\n",
	 "f.yaml:3:13: one of `header`, `query` and `basic: true` says where the secret goes"},
	{"  secrets: [{env: PALE_K, value_from: \"env:X\", hosts: a.example, basic: true}]\n",
	 "f.yaml:3:19: network.secrets[].env: expected a variable's name"},
	{"  secrets: [{file: k, value_from: \"env:X\", hosts: a.example, basic: true}]\n",
	 "f.yaml:3:13: \"k\": `file` is a path in the box: absolute"},
	{"  secrets: [{file: /proc/k, value_from: \"env:X\", hosts: a.example, basic: true}]\n",
	 "f.yaml:3:13: \"/proc/k\" cannot be a path"},
	{"  secrets: [{env: K, value_from: \"env:X\", hosts: a.example, header: Host}]\n",
	 "f.yaml:3:69: network.secrets[].header: expected the name of a header"},
	{"  secrets: [{env: K, value_from: \"env:X\", hosts: a.example, header: \"a b\"}]\n",
	 "f.yaml:3:69: network.secrets[].header: expected the name of a header"},
	{"  secrets: [{env: K, value_from: \"env:X\", hosts: a.example, query: a&b}]\n",
	 "f.yaml:3:68: network.secrets[].query: expected the name of a query field"},
	{"  secrets: [{env: K, value_from: \"env:X\", hosts: [], header: a}]\n",
	 "f.yaml:3:50: network.secrets[].hosts: the list is empty"},
	{"  allow: [{host: a.example, methods: []}]\n",
	 "f.yaml:3:38: network.allow[].methods: the list is empty"},
	{"  exempt: [a..example]\n", "f.yaml:3:12: network.exempt: expected a host name"},
	{"  extra_ca: [[a]]\n", "f.yaml:3:14: network.extra_ca: expected a path, or a list"},
	{"  connections: 0\n", "f.yaml:3:16: network.connections: \"0\" is too little"},
};

static void test_wrong(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_cleanup_policy_ struct policy *p = NULL;
		struct pale_err err = {0};

		assert_int_equal(policy_new(&p, &err), 0);
		if (load_text(p, wrong[i].text, &err) != -PALE_E_POLICY ||
		    !str_starts(err.message, wrong[i].message)) {
			print_error("%s\ngave %s\nnot  %s\n", wrong[i].text, err.message,
				    wrong[i].message);
			failed++;
		}
		assert_int_equal(p->network.nrules, 0);
		assert_int_equal(p->network.nsecrets, 0);
	}
	assert_int_equal(failed, 0);
}

/* Somebody writes the secret itself where its source belongs: no message may repeat it. */
static void test_no_secret_in_a_message(void **state)
{
	static const char *const values[] = {"hunter2hunter2", "ghp_hunter2", "ENV:hunter2",
					     "fd:hunter2", "env:a=hunter2"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		_cleanup_policy_ struct policy *p = NULL;
		_cleanup_free_ char *text = NULL;
		struct pale_err err = {0};

		assert_int_equal(policy_new(&p, &err), 0);
		assert_true(asprintf(&text,
				     "  secrets: [{env: K, value_from: \"%s\", hosts: a.example, "
				     "header: x}]\n",
				     values[i]) > 0);
		assert_int_equal(load_text(p, text, &err), -PALE_E_POLICY);
		assert_non_null(strstr(err.message, "never the value itself"));
		assert_null(strstr(err.message, "hunter2"));
	}
}

static const char everything[] =
	"  deny:\n"
	"    - {host: \"*.evil.example\", reason: \"use \\\"the mirror\\\"\"}\n"
	"    - {host: a.example, methods: DELETE}\n"
	"    - {address: 10.0.0.0/8}\n"
	"  allow:\n"
	"    - {preset: pypi, rate: 1MiB}\n"
	"    - {host: a.example, methods: [GET], paths: [/v1/**, "
	"\"/%61%20b%3f%23100%25/%c3%a9\", \"**.git/info\"], reason: read only}\n"
	"    - {host: \"*.evil.example\", ports: [80, 443, 8000-8010], protocol: [tls, http]}\n"
	"    - {host: db.example, address: 10.1.0.0/16, port: 5432, protocol: tcp, bytes: 1GiB}\n"
	"    - {address: \"2001:db8::1\", port: 53, protocol: udp}\n"
	"  secrets:\n"
	"    - {env: K, value_from: \"file:key\", hosts: [a.example, \"*.b.example\"], header: "
	"X-Key}\n"
	"    - {env: L, file: /etc/l, value_from: \"command:pass show l\", hosts: a.example, "
	"query: k}\n"
	"    - {env: M, value_from: \"fd:7\", hosts: a.example, basic: true}\n"
	"  exempt: [pinned.example]\n"
	"  extra_ca: [ca.pem, /etc/other.pem]\n"
	"  rate: 1MiB\n"
	"  bytes: 1GiB\n"
	"  connections: 7\n";

static void test_everything(void **state)
{
	_cleanup_policy_ struct policy *p = load(everything), *again = NULL, *copy = NULL,
				       *from_yaml = NULL;
	_cleanup_free_ char *text = NULL, *text2 = NULL, *text3 = NULL, *yaml = NULL, *text4 = NULL;
	const struct policy_network *n = &p->network;
	_cleanup_free_ char *places = NULL;
	char lines[32][160];
	struct pale_err err;
	json_t *list;

	(void)state;
	assert_int_equal(n->nrules, 9);
	assert_string_equal(n->rules[0].host, "pypi.org");
	assert_string_equal(n->rules[0].preset, "pypi");
	assert_string_equal(n->rules[0].where, "f.yaml:8:7");
	assert_int_equal(n->rules[0].rate_bytes, 1 << 20);
	assert_string_equal(n->rules[2].reason, "read only");
	/* As a request's path is compared. */
	assert_string_equal(n->rules[2].paths[1], "/a b?#100%/\xc3\xa9");
	assert_string_equal(n->rules[2].paths[2], "**.git/info");
	assert_int_equal(n->rules[4].total_bytes, 1 << 30);
	assert_true(n->rules[6].deny);
	assert_int_equal(n->nsecrets, 3);
	assert_string_equal(n->secrets[0].value_from, "file:/base/key");
	assert_string_equal(n->secrets[0].name, "x-key");
	assert_int_equal(n->secrets[1].place, SECRET_QUERY);
	assert_string_equal(n->secrets[1].file, "/etc/l");
	assert_int_equal(n->secrets[2].place, SECRET_BASIC);
	assert_null(n->secrets[2].name);
	assert_string_equal(n->exempt[0], "pinned.example");
	assert_string_equal(n->extra_ca[0], "/base/ca.pem");
	assert_int_equal(n->connections, 7);
	assert_int_equal(policy_check(p, &err), 0);

	assert_int_equal(policy_to_json(p, &text, &err), 0);
	assert_int_equal(policy_new(&again, &err), 0);
	if (policy_load_memory(again, text, strlen(text), "again", "/", true, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(policy_to_json(again, &text2, &err), 0);
	assert_string_equal(text, text2);
	/* The rules are in the same order: the broker speaks of them by their index. */
	assert_int_equal(again->network.nrules, n->nrules);
	for (size_t i = 0; i < n->nrules; i++) {
		char a[NETWORK_RULE_TEXT], b[NETWORK_RULE_TEXT];

		assert_string_equal(network_rule_text(&n->rules[i], a),
				    network_rule_text(&again->network.rules[i], b));
	}
	/* Their places go beside the canonical text. */
	assert_int_equal(policy_network_places(n, &places, &err), 0);
	list = json_loads(places, 0, NULL);
	assert_int_equal(policy_network_take_places(&again->network, list), 0);
	assert_string_equal(again->network.rules[8].where, n->rules[8].where);
	assert_string_equal(again->network.secrets[2].where, n->secrets[2].where);
	json_array_append_new(list, json_string("x"));
	assert_int_equal(policy_network_take_places(&again->network, list), -EINVAL);
	json_decref(list);
	assert_int_equal(policy_copy(&copy, p, &err), 0);
	assert_int_equal(policy_to_json(copy, &text3, &err), 0);
	assert_string_equal(text, text3);
	assert_int_equal(policy_to_yaml(p, &yaml, &err), 0);
	assert_int_equal(policy_new(&from_yaml, &err), 0);
	if (policy_load_memory(from_yaml, yaml, strlen(yaml), "yaml", "/", false, &err) < 0)
		fail_msg("%s\n%s", err.message, yaml);
	assert_int_equal(policy_to_json(from_yaml, &text4, &err), 0);
	assert_string_equal(text, text4);
	assert_int_equal(policy_widened(p, again, lines, 32), 0);
}

/* Bounds on what a text can make us keep, and on what the broker is sent. */
static void test_many(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	_cleanup_policy_ struct policy *p = NULL, *q = NULL, *again = NULL;
	_cleanup_free_ char *text = NULL;
	struct pale_err err;

	(void)state;
	assert_int_equal(policy_new(&p, &err), 0);
	assert_int_equal(policy_new(&q, &err), 0);
	buf_adds(&b, "  allow: [{host: a.example, paths: [");
	for (int i = 0; i < 257; i++)
		buf_addf(&b, "%s/%d", i ? ", " : "", i);
	buf_adds(&b, "]}]\n");
	assert_int_equal(load_text(p, b.data, &err), -PALE_E_POLICY);
	assert_non_null(strstr(err.message, "network.allow[].paths: more than 256"));
	/* As many rules as there may be, and one more. */
	b.len = 0;
	buf_adds(&b, "  allow:\n");
	for (int i = 0; i < 1024; i++)
		buf_addf(&b, "  - {host: h%d.example, ports: [80, 443], rate: 1MiB, bytes: 1GiB}\n",
			 i);
	assert_int_equal(load_text(p, b.data, &err), 0);
	assert_int_equal(p->network.nrules, 2048);
	assert_int_equal(policy_to_json(p, &text, &err), 0);
	assert_int_equal(policy_new(&again, &err), 0);
	assert_int_equal(policy_load_memory(again, text, strlen(text), "again", "/", true, &err),
			 0);
	assert_int_equal(again->network.nrules, 2048);
	assert_int_equal(load_text(p, "  deny: [{host: a.example}]\n", &err), -PALE_E_POLICY);
	assert_non_null(strstr(err.message, "network: more than 2048 rules"));
	/* A preset that repeats long lists. */
	b.len = 0;
	buf_adds(&b, "  allow:\n");
	for (int k = 0; k < 4; k++) {
		buf_adds(&b, "  - {preset: github, paths: [");
		for (int i = 0; i < 250; i++)
			buf_addf(&b, "%s/%d%0200d", i ? ", " : "", k, i);
		buf_adds(&b, "]}\n");
	}
	assert_int_equal(load_text(q, b.data, &err), 0);
	assert_int_equal(policy_check(q, &err), -PALE_E_POLICY);
	assert_non_null(strstr(err.message, "network: the rules are longer than"));
}

static void test_check(void **state)
{
	static const struct {
		const char *network, *message; /* NULL: good */
		bool whole;
	} rows[] = {
		{"  exempt: [a.example]\n  allow: [{host: a.example}]\n", NULL, false},
		{"  exempt: [a.example]\n  allow: [{host: a.example, methods: GET}]\n",
		 "f.yaml:4:11: `methods` cannot be enforced for a.example, which network.exempt "
		 "names",
		 false},
		{"  exempt: [\"*.example\"]\n  allow: [{host: a.example, paths: /}]\n",
		 "f.yaml:4:11: `paths` cannot be enforced for a.example, which", false},
		{"  exempt: [a.example]\n  allow: [{host: \"*.example\", intercept: true}]\n",
		 "f.yaml:4:11: `intercept` cannot be enforced for *.example, which", false},
		{"  exempt: [a.example]\n  deny: [{host: a.example, methods: POST}]\n",
		 "f.yaml:4:10: `methods` cannot be enforced for a.example, which", false},
		{"  exempt: [a.example]\n  allow: [{host: a.example, methods: GET, protocol: "
		 "http}]\n",
		 NULL, false},
		{"  allow: [{host: \"*.example\", port: 443, protocol: tcp}]\n"
		 "  deny: [{host: a.example, methods: POST}]\n",
		 "f.yaml:4:10: `methods` cannot be enforced for a.example, which is allowed as tcp "
		 "(f.yaml:3:11)",
		 false},
		{"  allow: [{host: a.example, port: 443, protocol: tcp}]\n"
		 "  deny: [{host: \"*.example\", protocol: tls}]\n",
		 "f.yaml:4:10: `protocol` cannot be enforced for *.example, which is allowed as "
		 "tcp "
		 "(f.yaml:3:11): allow it as tls or http, or deny tcp, too",
		 false},
		{"  allow: [{host: a.example, port: 443, protocol: tcp}]\n"
		 "  deny: [{host: \"*.example\", port: 80, protocol: http}, {host: \"*.example\", "
		 "protocol: udp}]\n",
		 NULL, false},
		{"  allow: [{host: a.example, port: 22}]\n"
		 "  deny: [{host: a.example, port: 443, paths: /}]\n",
		 NULL, false},
		{"  exempt: [a.example]\n  secrets: [{env: K, value_from: \"env:X\", hosts: "
		 "a.example, header: x}]\n",
		 "f.yaml:4:13: a secret cannot be put into what goes to a.example, which", false},
		{"  secrets:\n  - {env: K, value_from: \"env:X\", hosts: a.example, header: x}\n"
		 "  - {env: K, value_from: \"env:X\", hosts: b.example, header: x}\n",
		 "f.yaml:5:5: another secret has \"K\" already (f.yaml:4:5)", false},
		{"  secrets:\n  - {env: K, value_from: \"env:X\", hosts: a.example, header: x}\n",
		 "f.yaml:4:5: the secret is for a.example, which no rule of network.allow allows",
		 true},
		{"  allow: [{host: a.example, port: 22}]\n"
		 "  secrets: [{env: K, value_from: \"env:X\", hosts: a.example, header: x}]\n",
		 "f.yaml:4:13: the secret is for a.example, which is allowed as tcp or udp only",
		 true},
		{"  allow: [{host: \"*.example\"}]\n"
		 "  secrets: [{env: K, value_from: \"env:X\", hosts: a.example, header: x}]\n",
		 NULL, true},
		{"  allow: [{host: a.example}]\n"
		 "  secrets: [{env: K, value_from: \"env:X\", hosts: \"*.example\", header: x}]\n",
		 NULL, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_policy_ struct policy *p = load(rows[i].network);
		struct pale_err err = {0};
		int r = policy_check(p, &err);

		if (rows[i].whole) {
			assert_int_equal(r, 0);
			r = policy_check_whole(p, &err);
		}
		if ((rows[i].message != NULL) != (r < 0) ||
		    (r < 0 && !str_starts(err.message, rows[i].message)))
			fail_msg("%s\n%s", rows[i].network, err.message);
	}
}

/* ---- what the rules answer ---- */

struct ask {
	const char *who; /* a host, or an address */
	uint16_t port;
	unsigned protocol;
	const char *method, *path;
	const char *answer; /* "+2": rule 2 allows; "-3": rule 3 denies; "-": none covers it; with
			       "named" where a rule names the host */
};

static void check_asks(const struct policy *p, const struct ask *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct network_question q = {.port = rows[i].port,
					     .protocol = rows[i].protocol,
					     .method = rows[i].method,
					     .path = rows[i].path};
		struct network_answer a;
		struct in6_addr address;
		char text[32];

		q.family = strchr(rows[i].who, ':') ? AF_INET6 : AF_INET;
		if (inet_pton(q.family, rows[i].who, &address) == 1)
			q.address = &address;
		else
			q.host = rows[i].who;
		a = network_ask(&p->network, &q);
		if (a.rule < 0)
			snprintf(text, sizeof(text), "-%s", a.named ? " named" : "");
		else
			snprintf(text, sizeof(text), "%c%d%s", a.allowed ? '+' : '-', a.rule,
				 a.named ? " named" : "");
		if (strcmp(text, rows[i].answer) != 0)
			fail_msg("%s:%u %u %s %s: %s, not %s", rows[i].who, rows[i].port,
				 rows[i].protocol, rows[i].method ? rows[i].method : "-",
				 rows[i].path ? rows[i].path : "-", text, rows[i].answer);
	}
}

static void test_ask(void **state)
{
	static const struct ask rows[] = {
		{"a.example", 443, NETWORK_TLS, NULL, NULL, "+0 named"},
		{"a.example", 0, 0, NULL, NULL, "+0 named"},
		{"a.example", 443, 0, NULL, NULL, "+0 named"},
		{"a.example", 443, NETWORK_TLS, "GET", "/v1/x", "+0 named"},
		{"a.example", 443, NETWORK_TLS, "GET", "/v2/x", "- named"},
		{"a.example", 443, NETWORK_TLS, "POST", "/v1/x", "- named"},
		{"a.example", 443, NETWORK_TLS, "get", "/v1/x", "- named"},
		{"a.example", 443, NETWORK_HTTP, NULL, NULL, "- named"},
		{"a.example", 443, NETWORK_TCP, NULL, NULL, "- named"},
		{"a.example", 22, NETWORK_TCP, NULL, NULL, "- named"},
		{"x.b.example", 443, NETWORK_TLS, NULL, NULL, "+1 named"},
		{"x.b.example", 443, NETWORK_TLS, "GET", "/", "+1 named"},
		{"x.b.example", 443, NETWORK_TLS, "DELETE", "/", "-7 named"},
		{"b.example", 443, NETWORK_TLS, NULL, NULL, "-"},
		{"xb.example", 443, NETWORK_TLS, NULL, NULL, "-"},
		{"evil.b.example", 443, NETWORK_TLS, NULL, NULL, "-6 named"},
		{"evil.b.example", 0, 0, NULL, NULL, "-6 named"},
		{"c.example", 0, 0, NULL, NULL, "+2 named"},
		{"c.example", 8005, NETWORK_TCP, NULL, NULL, "+2 named"},
		{"c.example", 8000, NETWORK_TCP, NULL, NULL, "+2 named"},
		{"c.example", 8011, NETWORK_TCP, NULL, NULL, "- named"},
		{"c.example", 7999, NETWORK_TCP, NULL, NULL, "- named"},
		{"c.example", 8006, NETWORK_TCP, NULL, NULL, "-8 named"},
		{"c.example", 8006, NETWORK_UDP, NULL, NULL, "- named"},
		{"192.0.2.7", 443, NETWORK_TLS, NULL, NULL, "+3 named"},
		{"192.0.2.66", 443, NETWORK_TLS, NULL, NULL, "-9 named"},
		{"::ffff:192.0.2.7", 443, NETWORK_TLS, NULL, NULL, "+3 named"},
		{"::ffff:192.0.2.66", 443, NETWORK_TLS, NULL, NULL, "-9 named"},
		{"64:ff9b::192.0.2.66", 443, NETWORK_TLS, NULL, NULL, "-9 named"},
		{"192.0.3.7", 443, NETWORK_TLS, NULL, NULL, "-"},
		{"10.1.2.3", 5432, NETWORK_TCP, NULL, NULL, "-"},
		{"db.example", 5432, NETWORK_TCP, NULL, NULL, "+4 named"},
		/* The first that covers it decides, for its caps. */
		{"two.example", 443, NETWORK_TLS, NULL, NULL, "+5 named"},
		{"named.example", 443, NETWORK_TLS, NULL, NULL, "-11 named"},
		{"named.example", 80, NETWORK_HTTP, NULL, NULL, "- named"},
		{"named.example", 0, 0, NULL, NULL, "- named"},
	};
	_cleanup_policy_ struct policy *p =
		load("  allow:\n"
		     "    - {host: a.example, methods: GET, paths: /v1/**}\n"
		     "    - {host: \"*.b.example\"}\n"
		     "    - {host: c.example, port: 8000-8010, protocol: tcp}\n"
		     "    - {address: 192.0.2.0/24}\n"
		     "    - {host: db.example, address: 10.1.0.0/16, port: 5432, protocol: tcp}\n"
		     "    - {host: two.example, rate: 1MiB}\n"
		     "  deny:\n"
		     "    - {host: evil.b.example}\n"
		     "    - {host: \"*.b.example\", methods: DELETE}\n"
		     "    - {host: c.example, port: 8006, protocol: tcp}\n"
		     "    - {address: 192.0.2.64/26}\n"
		     "    - {host: unrelated.example}\n"
		     "    - {host: named.example, port: 443, protocol: tls}\n");

	(void)state;
	check_asks(p, rows, ARRAY_SIZE(rows));
}

static void test_intercepts(void **state)
{
	static const struct {
		const char *host;
		uint16_t port;
		bool intercepts, paths;
	} rows[] = {
		{"a.example", 443, true, false},	{"a.example", 8443, false, false},
		{"b.example", 443, true, true},		{"c.example", 443, true, false},
		{"d.example", 443, false, false},	{"e.example", 443, true, false},
		{"x.f.example", 443, true, false},	{"f.example", 443, false, false},
		{"g.example", 443, false, false},	{"x.h.example", 443, true, false},
		{"pin.h.example", 443, false, false},	{"i.example", 80, false, true},
		{"nowhere.example", 443, false, false},
	};
	_cleanup_policy_ struct policy *p =
		load("  allow:\n"
		     "    - {host: a.example, methods: GET}\n"
		     "    - {host: a.example, port: 8443, protocol: tcp}\n"
		     "    - {host: b.example, paths: /x}\n"
		     "    - {host: c.example, intercept: true}\n"
		     "    - {host: d.example}\n"
		     "    - {host: e.example}\n"
		     "    - {host: \"*.f.example\"}\n"
		     "    - {host: f.example}\n"
		     "    - {host: g.example, port: 443, protocol: tcp}\n"
		     "    - {host: \"*.h.example\"}\n"
		     "    - {host: i.example, protocol: http, paths: /x}\n"
		     "  deny:\n"
		     "    - {host: e.example, methods: POST}\n"
		     "  secrets:\n"
		     "    - {env: K, value_from: \"env:X\", hosts: [\"*.f.example\", g.example], "
		     "header: x}\n"
		     "    - {env: L, value_from: \"env:X\", hosts: [\"*.h.example\"], header: x}\n"
		     "  exempt: [pin.h.example]\n");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (network_intercepts(&p->network, rows[i].host, rows[i].port) !=
		    rows[i].intercepts)
			fail_msg("intercepts: %s:%u", rows[i].host, rows[i].port);
		if (network_has_paths(&p->network, rows[i].host) != rows[i].paths)
			fail_msg("paths: %s", rows[i].host);
	}
}

/* Where it can never be, the broker reads no trust store. */
static void test_may_intercept(void **state)
{
	static const struct {
		const char *text;
		bool may;
	} rows[] = {
		{"  allow: [{host: a.example}]\n", false},
		{"  allow: [{host: a.example, protocol: http, methods: GET, paths: /x}]\n", false},
		{"  allow: [{host: a.example, methods: GET}]\n", true},
		{"  allow: [{host: a.example, protocol: tls, paths: /x}]\n", true},
		{"  allow: [{host: a.example, intercept: true}]\n", true},
		{"  allow: [{host: a.example}]\n  deny: [{host: a.example, methods: PUT}]\n", true},
		{"  allow: [{host: a.example}]\n"
		 "  secrets: [{env: K, value_from: \"env:X\", hosts: [a.example], header: x}]\n",
		 true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_policy_ struct policy *p = load(rows[i].text);

		if (network_may_intercept(&p->network) != rows[i].may)
			fail_msg("%s", rows[i].text);
	}
}

static void test_may_dial(void **state)
{
	static const struct {
		int rule;
		const char *address;
		uint16_t port;
		bool may;
	} rows[] = {
		{0, "93.184.216.34", 443, true},
		{0, "127.0.0.1", 443, false},
		{0, "::ffff:127.0.0.1", 443, false},
		{0, "169.254.169.254", 443, false},
		{0, "64:ff9b::10.0.0.1", 443, false},
		{0, "10.2.0.1", 443, true}, /* another rule names it, on this port */
		{0, "10.2.0.1", 80, false},
		{0, "10.2.9.9", 443, false}, /* but not where it is denied */
		{0, "8.8.4.4", 443, false},
		{0, "64:ff9b::8.8.4.4", 443, false},
		{0, "2002:0808:0404::1", 443, false},
		{1, "10.1.0.5", 443, true},
		{1, "10.3.0.5", 443, false},
		{1, "93.184.216.34", 443, false}, /* it says where its addresses lie */
		{3, "93.184.216.34", 443, false}, /* denies */
		{-1, "93.184.216.34", 443, false},
		{99, "93.184.216.34", 443, false},
	};
	_cleanup_policy_ struct policy *p = load("  allow:\n"
						 "    - {host: a.example}\n"
						 "    - {host: b.example, address: 10.1.0.0/16}\n"
						 "    - {address: 10.2.0.0/16}\n"
						 "  deny:\n"
						 "    - {address: 10.2.9.0/24}\n"
						 "    - {address: 8.8.4.4}\n");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int family = strchr(rows[i].address, ':') ? AF_INET6 : AF_INET;
		struct in6_addr a;

		assert_int_equal(inet_pton(family, rows[i].address, &a), 1);
		struct network_dial d = {.rule = rows[i].rule,
					 .host = rows[i].rule == 1 ? "b.example" : "a.example",
					 .family = family,
					 .address = &a,
					 .port = rows[i].port,
					 .protocol = NETWORK_TLS};

		if (network_may_dial(&p->network, &d) != rows[i].may)
			fail_msg("%d %s:%u", rows[i].rule, rows[i].address, rows[i].port);
	}
}

/* Rules for one host add up, as rules do. */
static void test_may_dial_by_several(void **state)
{
	static const struct {
		const char *host, *address;
		bool may;
	} rows[] = {
		{"a.example", "93.184.216.34", true},
		{"a.example", "10.5.0.1", true},
		{"a.example", "10.7.0.1", false},
		{"b.example", "10.5.0.1", true},
		{"b.example", "10.6.0.1", true},
		{"b.example", "93.184.216.34", false}, /* both say where it leads */
		{"c.example", "10.5.0.1", false},      /* the other one is for some requests */
		{"d.example", "10.5.0.1", false},      /* or for another port */
	};
	_cleanup_policy_ struct policy *p =
		load("  allow:\n"
		     "    - {host: a.example}\n"
		     "    - {host: a.example, address: 10.5.0.0/16}\n"
		     "    - {host: b.example, address: 10.5.0.0/16}\n"
		     "    - {host: \"*.example\", address: 10.6.0.1}\n"
		     "    - {host: c.example}\n"
		     "    - {host: c.example, address: 10.5.0.0/16, methods: GET}\n"
		     "    - {host: d.example}\n"
		     "    - {host: d.example, address: 10.5.0.0/16, port: 8443, protocol: tls}\n");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct network_question q = {
			.host = rows[i].host, .port = 443, .protocol = NETWORK_TLS};
		struct in_addr a;
		struct network_dial d = {.rule = network_ask(&p->network, &q).rule,
					 .host = rows[i].host,
					 .family = AF_INET,
					 .address = &a,
					 .port = 443,
					 .protocol = NETWORK_TLS};

		assert_int_equal(inet_pton(AF_INET, rows[i].address, &a), 1);
		if (network_may_dial(&p->network, &d) != rows[i].may)
			fail_msg("%s at %s", rows[i].host, rows[i].address);
	}
}

static void test_wanted(void **state)
{
	_cleanup_policy_ struct policy *none = load("  rate: 1MiB\n"),
				       *deny = load("  deny: [{host: a.example}]\n"),
				       *allow = load("  allow: [{host: a.example}]\n");
	struct pale_err err;

	(void)state;
	assert_false(network_wanted(&none->network));
	assert_false(network_wanted(&deny->network));
	assert_true(network_wanted(&allow->network));
	/* A profile without sockets would make the rules a lie. */
	assert_int_equal(policy_set(allow, "kernel.profile", "strict", NULL, &err), 0);
	assert_int_equal(policy_check_whole(allow, &err), -PALE_E_POLICY);
	assert_non_null(strstr(err.message, "profile: strict"));
	assert_int_equal(policy_set(deny, "kernel.profile", "strict", NULL, &err), 0);
	assert_int_equal(policy_check_whole(deny, &err), 0);
}

static void test_widened(void **state)
{
	static const struct {
		const char *file, *flags;
		const char *line; /* NULL: nothing is wider */
	} rows[] = {
		{"  rate: 1MiB\n", "  allow: [{host: a.example}]\n",
		 "network: allow tls a.example:443"},
		{"  rate: 1MiB\n", "  deny: [{host: a.example}]\n", NULL},
		{"  rate: 1MiB\n", "  exempt: [a.example]\n",
		 "network.exempt: a.example instead of none"},
		{"  rate: 1MiB\n", "  extra_ca: [/x]\n", "network.extra_ca: /x instead of none"},
		{"  rate: 1MiB\n", "  rate: 2MiB\n", "network.rate: 2MiB instead of 1MiB"},
		{"  rate: 2MiB\n", "  rate: 1MiB\n", NULL},
		{"  exempt: [a.example]\n", "  rate: 1MiB\n", NULL}, /* no cap before */
		{"  allow: [{host: a.example}]\n", "  allow: [{host: A.example., port: 443}]\n",
		 NULL},
		{"  rate: 1MiB\n",
		 "  secrets: [{env: K, value_from: \"command:echo hunter2\", hosts: a.example, "
		 "header: "
		 "x}]\n",
		 "network.secrets: K for a.example"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_policy_ struct policy *file = load(rows[i].file), *flags = NULL;
		struct pale_err err;
		char lines[4][160];
		int n;

		assert_int_equal(policy_copy(&flags, file, &err), 0);
		assert_int_equal(load_text(flags, rows[i].flags, &err), 0);
		n = policy_widened(file, flags, lines, 4);
		if (n != (rows[i].line ? 1 : 0) || (n && strcmp(lines[0], rows[i].line) != 0))
			fail_msg("%s%s: %d %s", rows[i].file, rows[i].flags, n, n ? lines[0] : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_left_out),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_no_secret_in_a_message),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_ask),
		cmocka_unit_test(test_intercepts),
		cmocka_unit_test(test_may_intercept),
		cmocka_unit_test(test_may_dial),
		cmocka_unit_test(test_may_dial_by_several),
		cmocka_unit_test(test_wanted),
		cmocka_unit_test(test_widened),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
