/* Parts of the broker that keep count: addresses for names, events, caps. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "egress/cap.h"
#include "egress/egress.h"
#include "egress/refuse.h"
#include "egress/synthetic.h"

static const char *name_of(unsigned i)
{
	static char name[64];

	snprintf(name, sizeof(name), "n%u.example.com", i);
	return name;
}

static void test_synthetic(void **state)
{
	struct synthetic *s = NULL;
	struct synthetic_name *first, *held, *n;
	struct in_addr a4, again;
	struct in6_addr a6;
	char text[INET6_ADDRSTRLEN];

	(void)state;
	assert_int_equal(synthetic_new(&s), 0);
	first = synthetic_get(s, "a.example.com");
	synthetic_address4(first, &a4);
	synthetic_address6(first, &a6);
	assert_string_equal(inet_ntop(AF_INET, &a4, text, sizeof(text)), "198.18.0.1");
	assert_string_equal(inet_ntop(AF_INET6, &a6, text, sizeof(text)), "fd5b:ad::1");
	assert_ptr_equal(synthetic_find(s, AF_INET, &a4), first);
	assert_ptr_equal(synthetic_find(s, AF_INET6, &a6), first);
	assert_ptr_equal(synthetic_get(s, "a.example.com"), first);
	held = synthetic_get(s, "held.example.com");
	synthetic_hold(held);
	/* Many more names than there is room for: bounded, and the held one stays. */
	for (unsigned i = 0; i < 100000; i++) {
		n = synthetic_get(s, name_of(i));
		assert_non_null(n);
		assert_true(n->index >= 1 && n->index <= 65534);
	}
	assert_int_equal(synthetic_count(s), SYNTHETIC_MAX);
	assert_ptr_equal(synthetic_get(s, "held.example.com"), held);
	/* The first one is gone, and its address with it. */
	n = synthetic_find(s, AF_INET, &a4);
	assert_true(!n || strcmp(n->host, "a.example.com") != 0);
	/* An address is given again only after all others. */
	n = synthetic_get(s, "b.example.com");
	synthetic_address4(n, &a4);
	for (unsigned i = 0; i < 60000; i++) {
		synthetic_address4(synthetic_get(s, name_of(200000 + i)), &again);
		assert_int_not_equal(again.s_addr, a4.s_addr);
	}
	/* Everything held: no more. */
	for (unsigned i = 0; i < SYNTHETIC_MAX; i++) {
		n = synthetic_get(s, name_of(300000 + i));
		if (n)
			synthetic_hold(n);
	}
	assert_null(synthetic_get(s, "one-too-many.example.com"));
	synthetic_free(s);
	inet_pton(AF_INET, "198.19.0.1", &a4);
	assert_false(synthetic_is(AF_INET, &a4));
	inet_pton(AF_INET6, "fd5b:ad::1:1", &a6);
	assert_false(synthetic_is(AF_INET6, &a6));
}

struct sums {
	uint64_t all, same, messages;
};

/* A supervisor that is slow at first; what it heard goes into out. */
static void hear_all(int fd, int out)
{
	struct sums sums = {0};
	struct egress_message m;

	usleep(300000);
	while (recv(fd, &m, sizeof(m), 0) == (ssize_t)sizeof(m)) {
		sums.all += m.event.count;
		sums.messages++;
		if (strcmp(m.event.host, "same.example.com") == 0)
			sums.same += m.event.count;
	}
	(void)!write(out, &sums, sizeof(sums));
	_exit(0);
}

/* However many, of however many kinds, and whether or not anybody reads: the sum is exact. */
static void test_events(void **state)
{
	struct egress e = {0};
	struct egress_event ev = {.outcome = EGRESS_BLOCKED, .what = EGRESS_LOOKUP, .rule = -1};
	struct sums sums = {0};
	int pair[2], answer[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);

	pid_t child = fork();

	if (child == 0) {
		close(pair[0]);
		hear_all(pair[1], answer[1]);
	}
	close(pair[1]);
	e.base = event_base_new();
	e.control = pair[0];
	assert_int_equal(events_new(&e, &e.events), 0);
	for (unsigned i = 0; i < 100000; i++) {
		EVENT_TEXT(ev.host, "same.example.com");
		event_tell(&e, &ev);
	}
	for (unsigned i = 0; i < 100000; i++) {
		EVENT_TEXT(ev.host, name_of(i));
		event_tell(&e, &ev);
	}
	events_flush(&e);
	events_free(e.events);
	event_base_free(e.base);
	close(pair[0]);
	assert_int_equal(read(answer[0], &sums, sizeof(sums)), sizeof(sums));
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(sums.all, 200000);
	assert_int_equal(sums.same, 100000);
	assert_true(sums.messages < 2000);
	close(answer[0]);
	close(answer[1]);
}

static void test_caps(void **state)
{
	struct network_range port = {443, 443};
	char host[] = "a.example.com", other[] = "b.example.com";
	struct network_rule rules[2] = {{.host = host,
					 .protocols = NETWORK_TLS,
					 .ports = &port,
					 .nports = 1,
					 .total_bytes = 1000},
					{.host = other,
					 .protocols = NETWORK_TLS,
					 .ports = &port,
					 .nports = 1,
					 .rate_bytes = 1000000}};
	struct network_rule turned[2] = {rules[1], rules[0]};
	struct policy_network n = {.rules = rules, .nrules = 2, .total_bytes = 100000};
	struct policy_network later = {.rules = turned, .nrules = 2, .total_bytes = 100000};
	struct caps *c = NULL;

	(void)state;
	assert_int_equal(caps_new(&n, &c), 0);
	assert_int_equal(caps_account(c, 0, 999), 0);
	assert_int_equal(caps_pause_us(c, 0), 0);
	/* The rules change places; what was used stays used. */
	assert_int_equal(caps_rules(c, &n, &later), 0);
	assert_int_equal(caps_account(c, 1, 1), -EDQUOT);
	assert_non_null(strstr(caps_quota_detail(c, 1), "rule"));
	assert_int_equal(caps_account(c, 0, 50000), 0);
	assert_in_range(caps_pause_us(c, 0), 30000, 50000);
	assert_int_equal(caps_account(c, -1, 49001), -EDQUOT);
	assert_non_null(strstr(caps_quota_detail(c, -1), "box"));
	caps_free(c);
}

static void test_refusals(void **state)
{
	static const char hostile[] = "/\x1b[31m\"\r\nX: y\xff";
	struct policy_network n = {0};
	const struct refusal r = {.host = "a.example.com",
				  .port = 80,
				  .protocol = NETWORK_HTTP,
				  .method = "GET",
				  .path = hostile,
				  .rule = -1};
	_cleanup_buf_ struct buf b = BUF_INIT(16384);
	char line[600];

	(void)state;
	assert_int_equal(refuse_http(&b, &n, &r, "application/json, text/plain", false), 0);
	assert_null(memchr(b.data, 0x1b, b.len));
	assert_null(strstr(b.data, "\nX: y"));
	assert_non_null(strstr(b.data, "blocked_by_policy"));
	b.len = 0;
	assert_int_equal(refuse_http(&b, &n, &r, "text/html,application/json", true), 0);
	assert_non_null(strstr(b.data, "text/plain"));
	assert_string_equal(b.data + b.len - 4, "\r\n\r\n");
	refuse_line(line, sizeof(line), &n, &r);
	assert_null(strchr(line, '\n'));
	assert_true(refuse_wants_json("application/problem+json"));
	assert_false(refuse_wants_json("*/*"));
	assert_false(refuse_wants_json(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_synthetic),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_refusals),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("egress/units", tests, NULL, NULL);
}
