/* Which rule would have allowed what was refused: each is tried, by adding it. */
#include "policy/policy.h"
#include "policy/remedy.h"
#include "base/str.h"
#include <arpa/inet.h>
#include <stdarg.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static const char policy_text[] =
	"pale: 1\n"
	"network:\n"
	"  allow:\n"
	"    - {host: tls.example}\n"
	"    - {host: \"*.sub.example\", port: 80}\n"
	"    - {host: db.example, address: 10.1.0.0/16, port: 5432, protocol: tcp}\n"
	"    - {host: six.example, address: \"fd00:1::/64\", port: 443}\n"
	"    - {host: get.example, methods: GET}\n"
	"    - {host: path.example, paths: [/v1/**]}\n"
	"    - {host: plain.example, protocol: http, port: 8080, methods: GET}\n"
	"    - {address: 0.0.0.0/0, port: 7000, protocol: tcp}\n"
	"  deny:\n"
	"    - {host: no.example}\n"
	"    - {host: post.example, methods: POST}\n"
	"    - {address: 10.66.0.0/16}\n";

enum { TLS = NETWORK_TLS, HTTP = NETWORK_HTTP, TCP = NETWORK_TCP, UDP = NETWORK_UDP };

static const struct {
	const char *host, *address;
	bool unfit;
	uint16_t port;
	int protocol;
	const char *method, *path;
	const char *want; /* "": none */
} rows[] = {
	/* names that were looked up */
	{"new.example", NULL, false, 0, 0, NULL, NULL, "new.example"},
	{"NEW.Example.", NULL, false, 0, 0, NULL, NULL, "new.example"},
	{"no.example", NULL, false, 0, 0, NULL, NULL, ""},
	{"two words", NULL, false, 0, 0, NULL, NULL, ""},
	{"a.example'; rm", NULL, false, 0, 0, NULL, NULL, ""},
	{"*.example", NULL, false, 0, 0, NULL, NULL, ""},
	{"34.216.184.93.in-addr.arpa", NULL, false, 0, 0, NULL, NULL, ""},
	/* ports and protocols */
	{"new.example", NULL, false, 443, TLS, NULL, NULL, "new.example:443"},
	{"new.example", NULL, false, 443, 0, NULL, NULL, "new.example:443"},
	{"new.example", NULL, false, 80, HTTP, NULL, NULL, "new.example:80"},
	{"new.example", NULL, false, 22, TCP, NULL, NULL, "new.example:22"},
	{"new.example", NULL, false, 22, 0, NULL, NULL, "new.example:22"},
	{"new.example", NULL, false, 8443, TLS, NULL, NULL, "tls://new.example:8443"},
	{"new.example", NULL, false, 8080, HTTP, NULL, NULL, "http://new.example:8080"},
	{"new.example", NULL, false, 443, TCP, NULL, NULL, "tcp://new.example:443"},
	{"new.example", NULL, false, 5432, 0, NULL, NULL, "tcp://new.example:5432"},
	{"new.example", NULL, false, 123, UDP, NULL, NULL, "udp://new.example:123"},
	{"tls.example", NULL, false, 80, HTTP, NULL, NULL, "tls.example:80"},
	{"tls.example", NULL, false, 443, HTTP, NULL, NULL, "http://tls.example:443"},
	/* allowed already: it is something else that is wrong */
	{"tls.example", NULL, false, 443, TLS, NULL, NULL, ""},
	/* denied: all of it, or what would then not be seen */
	{"no.example", NULL, false, 443, TLS, NULL, NULL, ""},
	{"post.example", NULL, false, 443, TLS, "POST", "/", ""},
	{"post.example", NULL, false, 443, TCP, NULL, NULL, ""},
	{"post.example", NULL, false, 443, TLS, NULL, NULL, "post.example:443"},
	/* requests: of a host to which others may go, the likes of it; of another, all */
	{"get.example", NULL, false, 443, TLS, "POST", "/x", "POST get.example:443"},
	{"get.example", NULL, false, 443, TLS, "CONNECT", "/x", ""},
	{"get.example", NULL, false, 443, TLS, "PO ST", "/x", ""},
	{"new.example", NULL, false, 80, HTTP, "POST", "/x", "new.example:80"},
	{"path.example", NULL, false, 443, TLS, "GET", "/v2/a?key=1", "GET path.example:443/v2/a"},
	{"path.example", NULL, false, 443, TLS, "GET", "/v2/a*b", "GET path.example:443"},
	{"path.example", NULL, false, 443, TLS, "GET", "/v2/a'b", "GET path.example:443"},
	{"path.example", NULL, false, 443, TLS, "GET", "/v2/../v1", ""},
	{"plain.example", NULL, false, 8080, HTTP, "PUT", "/", "PUT http://plain.example:8080"},
	/* where the rules say that a host leads to private addresses, the rule has to say so, too
	 */
	{"db.example", NULL, false, 80, HTTP, NULL, NULL, "db.example=10.1.0.0/16:80"},
	{"db.example", NULL, false, 5433, TCP, NULL, NULL, "tcp://db.example=10.1.0.0/16:5433"},
	{"six.example", NULL, false, 80, HTTP, NULL, NULL, "six.example=[fd00:1::/64]:80"},
	/* only the address is wrong to which the name leads */
	{"tls.example", "10.2.0.9", true, 443, TLS, NULL, NULL, "tls.example=10.2.0.9:443"},
	{"tls.example", "fd00:9::1", true, 443, TLS, NULL, NULL, "tls.example=[fd00:9::1]:443"},
	{"tls.example", "127.0.0.1", true, 443, TLS, NULL, NULL, "tls.example=127.0.0.1:443"},
	{"db.example", "10.2.0.9", true, 5432, TCP, NULL, NULL, "tcp://db.example=10.2.0.9:5432"},
	{"tls.example", "10.66.0.9", true, 443, TLS, NULL, NULL, ""},
	{"tls.example", "224.0.0.1", true, 443, TLS, NULL, NULL, ""},
	{"get.example", "10.2.0.9", true, 443, TLS, "GET", "/", ""},
	/* addresses */
	{NULL, "192.0.2.7", false, 81, TCP, NULL, NULL, "tcp://192.0.2.7:81"},
	{NULL, "192.0.2.7", false, 443, 0, NULL, NULL, "192.0.2.7:443"},
	{NULL, "2001:db8::1", false, 80, 0, NULL, NULL, "[2001:db8::1]:80"},
	{NULL, "8.8.8.8", false, 123, UDP, NULL, NULL, "udp://8.8.8.8:123"},
	{NULL, "10.2.0.9", true, 7000, TCP, NULL, NULL, "tcp://10.2.0.9:7000"},
	{NULL, "10.66.0.9", false, 443, 0, NULL, NULL, ""},
	{NULL, "8.8.8.8", false, 0, UDP, NULL, NULL, ""},
	{NULL, "8.8.8.8/8", false, 53, UDP, NULL, NULL, ""},
	{NULL, "family 16", false, 1, TCP, NULL, NULL, ""},
	{NULL, "127.0.0.1", false, 80, 0, NULL, NULL, ""},
	{NULL, "::1", false, 80, 0, NULL, NULL, ""},
	{NULL, "::ffff:127.0.0.1", false, 80, 0, NULL, NULL, ""},
	{NULL, "198.18.0.4", false, 80, 0, NULL, NULL, ""},
	{NULL, "fd5b:ad::4", false, 80, 0, NULL, NULL, ""},
	{NULL, "10.0.2.100", false, 80, 0, NULL, NULL, ""},
	{NULL, "255.255.255.255", false, 67, UDP, NULL, NULL, ""},
};

static struct policy *load(void)
{
	struct policy *p = NULL;
	struct pale_err err;

	assert_int_equal(policy_new(&p, &err), 0);
	if (policy_load_memory(p, policy_text, strlen(policy_text), "f.yaml", "/", false, &err) < 0)
		fail_msg("%s", err.message);
	return p;
}

static struct network_attempt attempt_of(size_t i)
{
	return (struct network_attempt){.host = rows[i].host,
					.address = rows[i].address,
					.unfit = rows[i].unfit,
					.port = rows[i].port,
					.protocol = (enum network_protocol)rows[i].protocol,
					.method = rows[i].method,
					.path = rows[i].path};
}

static void test_words(void **state)
{
	_cleanup_policy_ struct policy *p = load();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct network_attempt a = attempt_of(i);
		char text[NETWORK_REMEDY_TEXT];
		bool is = network_remedy(&p->network, &a, text);

		if (strcmp(text, rows[i].want) != 0 || is != (*text != '\0'))
			fail_msg("%s %s:%u: \"%s\", not \"%s\"", rows[i].host ? rows[i].host : "",
				 rows[i].address ? rows[i].address : "", rows[i].port, text,
				 rows[i].want);
	}
}

static struct network_question question_of(size_t i, const struct policy *p, char *host, char *path,
					   struct in6_addr *address)
{
	struct network_question q = {.port = rows[i].port ? rows[i].port : 443,
				     .protocol = (enum network_protocol)rows[i].protocol,
				     .method = rows[i].method};
	const char *why;

	if (rows[i].host) {
		assert_int_equal(network_host_normalise(rows[i].host, strlen(rows[i].host), host),
				 0);
		q.host = host;
		if (rows[i].path && network_has_paths(&p->network, host)) {
			assert_int_equal(network_path_normalise(rows[i].path,
								strcspn(rows[i].path, "?"), path,
								NETWORK_PATH_MAX, &why),
					 0);
			q.path = path;
		}
	} else {
		q.family = strchr(rows[i].address, ':') ? AF_INET6 : AF_INET;
		assert_int_equal(inet_pton(q.family, rows[i].address, address), 1);
		q.address = address;
	}
	return q;
}

/* Whoever copies it onto the command line has what was refused, and not before. */
static void test_helps(void **state)
{
	char host[NETWORK_HOST_MAX + 1], path[NETWORK_PATH_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_policy_ struct policy *p = load();
		struct in6_addr address;
		struct network_question q;
		struct network_answer before, after;
		struct pale_err err;

		if (!*rows[i].want)
			continue;
		q = question_of(i, p, host, path, &address);
		before = network_ask(&p->network, &q);
		if (policy_add_rule(p, false, rows[i].want, "--allow", &err) < 0 ||
		    policy_check(p, &err) < 0)
			fail_msg("%s: %s", rows[i].want, err.message);
		after = network_ask(&p->network, &q);
		if (before.allowed != rows[i].unfit || !after.allowed)
			fail_msg("%s: %d before, %d after", rows[i].want, before.allowed,
				 after.allowed);
		if (!rows[i].unfit)
			continue;

		struct network_dial d = {.rule = after.rule,
					 .host = q.host,
					 .family =
						 strchr(rows[i].address, ':') ? AF_INET6 : AF_INET,
					 .address = &address,
					 .port = q.port,
					 .protocol = q.protocol};
		const struct network_cidr *by;
		bool bound;

		assert_int_equal(inet_pton(d.family, rows[i].address, &address), 1);
		by = network_named_by(&p->network, &d, &bound);
		if (!network_may_dial(&p->network, &d) || !by ||
		    by->bits != (d.family == AF_INET ? 32 : 128))
			fail_msg("%s: may not be dialled", rows[i].want);
	}
}

/* In a box without a network there is nothing to be asked. */
static void test_no_rules(void **state)
{
	struct network_attempt a = {.host = "new.example", .port = 443};
	char text[NETWORK_REMEDY_TEXT];

	(void)state;
	assert_true(network_remedy(NULL, &a, text));
	assert_string_equal(text, "new.example:443");
	a = (struct network_attempt){.address = "93.184.216.34", .port = 25};
	assert_true(network_remedy(NULL, &a, text));
	assert_string_equal(text, "tcp://93.184.216.34:25");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_helps),
		cmocka_unit_test(test_no_rules),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
