/* The agent's messages cut short at every byte, and the names of known_hosts. What real clients and
 * agents say is in test_agent.py. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "egress/agent_key.h"
#include "egress/agent_wire.h"
#include "plan/known_hosts.h"

static void put(struct buf *b, const void *data, size_t len)
{
	const uint8_t head[] = {0, 0, (uint8_t)(len >> 8), (uint8_t)len};

	buf_add(b, head, sizeof(head));
	buf_add(b, data, len);
}

static struct agent_bytes all(const struct buf *b)
{
	return (struct agent_bytes){(const uint8_t *)b->data, b->len};
}

/* Each message that is a byte short, or long, is none. */
static void cut_short(void **state)
{
	_cleanup_buf_ struct buf bind = BUF_INIT(4096), sign = BUF_INIT(4096),
				 data = BUF_INIT(4096);
	struct agent_bind b;
	struct agent_login l;
	struct agent_sign s;

	(void)state;
	buf_add(&bind, "\x1b", 1);
	put(&bind, "session-bind@openssh.com", 24);
	put(&bind, "key", 3);
	put(&bind, "0123456789abcdef0123", 20);
	put(&bind, "signature", 9);
	buf_add(&bind, "\0", 1);
	assert_int_equal(agent_parse_bind(all(&bind), &b), 0);
	assert_true(agent_is(b.session_id, "0123456789abcdef0123"));
	for (size_t n = 0; n < bind.len; n++)
		assert_int_not_equal(
			agent_parse_bind((struct agent_bytes){(uint8_t *)bind.data, n}, &b), 0);

	put(&data, "0123456789abcdef0123", 20);
	buf_add(&data, "\x32", 1);
	put(&data, "me", 2);
	put(&data, "ssh-connection", 14);
	put(&data, "publickey", 9);
	buf_add(&data, "\1", 1);
	put(&data, "ssh-ed25519", 11);
	put(&data, "key", 3);
	buf_add(&sign, "\x0d", 1);
	put(&sign, "key", 3);
	put(&sign, data.data, data.len);
	buf_add(&sign, "\0\0\0\0", 4);
	assert_int_equal(agent_parse_sign(all(&sign), &s), 0);
	assert_int_equal(agent_parse_login(&s, &l), 0);
	assert_true(agent_is(l.user, "me"));
	assert_null(l.host_key.data);
	for (size_t n = 0; n < sign.len; n++) {
		struct agent_sign part;

		assert_int_not_equal(
			agent_parse_sign((struct agent_bytes){(uint8_t *)sign.data, n}, &part), 0);
	}
	for (size_t n = s.data.len; n-- > 0;) {
		struct agent_sign part = s;

		part.data.len = n;
		assert_int_not_equal(agent_parse_login(&part, &l), 0);
	}
}

/* Lengths that do not fit what is there. */
static void lengths(void **state)
{
	static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 'x'};
	struct agent_bytes from = {huge, sizeof(huge)}, got;

	(void)state;
	assert_false(agent_take(&from, &got));
	assert_int_equal(from.len, sizeof(huge));
	assert_int_equal(agent_length((const uint8_t[]){0, 4, 0, 0}), AGENT_MESSAGE_MAX);
	assert_int_equal(agent_length((const uint8_t[]){0, 4, 0, 1}), 0);
	assert_int_equal(agent_length((const uint8_t[]){0xff, 0xff, 0xff, 0xff}), 0);
	assert_int_equal(agent_key_prepare(), 0);
	assert_int_equal(agent_key_verify(from, from, from), -EINVAL);
}

static void names(void **state)
{
	static const struct {
		const char *field, *name;
		bool covers;
	} rows[] = {
		{"git.example.com", "git.example.com", true},
		{"GIT.example.com", "git.example.com", true},
		{"git.example.com", "git.example.co", false},
		{"git.example.co", "git.example.com", false},
		{"a,git.example.com", "git.example.com", true},
		{"a,b", "git.example.com", false},
		{"*.example.com", "git.example.com", true},
		{"*.example.com", "example.com", false},
		{"git.example.???", "git.example.com", true},
		{"*", "git.example.com", true},
		{"*a*b*c*d*e*f*g*h*i*j*", "git.example.com", false},
		{"*,!git.example.com", "git.example.com", false},
		{"!git.example.com,*", "git.example.com", false},
		{"!git.example.com", "other.example.com", false},
		{"!*.example.com,*", "git.example.org", true},
		{"[git.example.com]:2222", "[git.example.com]:2222", true},
		{"[git.example.com]:2222", "git.example.com", false},
		{"", "git.example.com", false},
		{",", "git.example.com", false},
		{"!", "git.example.com", false},
		/* Salt of twenty zeros; HMAC-SHA1 of the name. */
		{"|1|AAAAAAAAAAAAAAAAAAAAAAAAAAA=|EduUnGsjnM0IqeWBWEmI5w6voMM=", "git.example.com",
		 true},
		{"|1|AAAAAAAAAAAAAAAAAAAAAAAAAAA=|EduUnGsjnM0IqeWBWEmI5w6voMM=", "git.example.org",
		 false},
		{"|1|AAAAAAAAAAAAAAAAAAAAAAAAAAA=|", "git.example.com", false},
		{"|1|", "git.example.com", false},
		{"|1|AAAAAAAAAAAAAAAAAAAAAAAAAAA=|!!!!!!!!!!!!!!!!!!!!!!!!!!!=", "git.example.com",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (known_hosts_covers(rows[i].field, strlen(rows[i].field), rows[i].name) !=
		    rows[i].covers)
			fail_msg("%s, %s", rows[i].field, rows[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_short),
		cmocka_unit_test(lengths),
		cmocka_unit_test(names),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
