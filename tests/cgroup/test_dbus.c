/* D-Bus messages: bytes as the specification has them, and input that is cut or wrong. */
#include "confine/dbus.h"

#include <stdarg.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

/* A method call as libdbus writes it (dbus-send --print-reply ... Hello, little-endian). */
static const unsigned char hello[] = "l\1\0\1\0\0\0\0\1\0\0\0\x6d\0\0\0"
				     "\1\1o\0\x15\0\0\0/org/freedesktop/DBus\0\0\0"
				     "\2\1s\0\x14\0\0\0org.freedesktop.DBus\0\0\0\0"
				     "\3\1s\0\5\0\0\0Hello\0\0\0"
				     "\6\1s\0\x14\0\0\0org.freedesktop.DBus\0\0\0";

static void test_marshal(void **state)
{
	(void)state;
	_cleanup_buf_ struct buf out = BUF_INIT(1024);
	const struct dbus_call call = {
		.destination = "org.freedesktop.DBus",
		.path = "/org/freedesktop/DBus",
		.interface = "org.freedesktop.DBus",
		.member = "Hello",
	};

	dbus_marshal(&out, 1, &call);
	assert_false(out.failed);
	assert_int_equal(out.len, 128);
	assert_memory_equal(out.data, hello, sizeof(hello) - 1);
}

/* A signal with the body of JobRemoved, made with the same writers. */
static void make_signal(struct buf *out)
{
	_cleanup_buf_ struct buf body = BUF_INIT(1024);

	dbus_u32(&body, 77);
	dbus_string(&body, "/job/77");
	dbus_string(&body, "pale-x.scope");
	dbus_string(&body, "done");
	const struct dbus_call call = {.path = "/p",
				       .interface = "i.f",
				       .member = "JobRemoved",
				       .signature = "uoss",
				       .body = &body};

	dbus_marshal(out, 9, &call);
	out->data[1] = DBUS_SIGNAL;
}

static void test_parse(void **state)
{
	(void)state;
	_cleanup_buf_ struct buf in = BUF_INIT(4096);
	struct dbus_message m;
	const char *s;
	uint32_t n;

	make_signal(&in);
	assert_int_equal(dbus_parse(in.data, in.len, &m), (int)in.len);
	assert_int_equal(m.type, DBUS_SIGNAL);
	assert_string_equal(m.member, "JobRemoved");
	assert_true(dbus_read_u32(&m, &n));
	assert_int_equal(n, 77);
	assert_true(dbus_read_string(&m, &s) && strcmp(s, "/job/77") == 0);
	assert_true(dbus_read_string(&m, &s) && strcmp(s, "pale-x.scope") == 0);
	assert_true(dbus_read_string(&m, &s) && strcmp(s, "done") == 0);
	assert_false(dbus_read_string(&m, &s));
	assert_null(s);
}

static void read_all(struct dbus_message *m)
{
	const char *s;
	uint32_t n;

	(void)!dbus_read_u32(m, &n);
	while (dbus_read_string(m, &s))
		assert_true(strlen(s) < 4096);
}

/* Every prefix waits for more, and nothing is read past what there is (the sanitizers look on). */
static void test_cut(void **state)
{
	(void)state;
	_cleanup_buf_ struct buf in = BUF_INIT(4096);

	make_signal(&in);
	for (size_t len = 0; len < in.len; len++) {
		_cleanup_free_ char *copy = malloc(len ? len : 1);
		struct dbus_message m;

		memcpy(copy, in.data, len);
		assert_int_equal(dbus_parse(copy, len, &m), 0);
	}
}

/* Every byte changed to each of a few values: a message, an error or more to wait for, never a
 * crash. */
static void test_wrong(void **state)
{
	static const unsigned char values[] = {0, 1, 4, 8, 0x7f, 0x80, 0xff, 's', 'u', 'g', 'v'};
	(void)state;
	_cleanup_buf_ struct buf in = BUF_INIT(4096);

	make_signal(&in);
	for (size_t i = 0; i < in.len; i++) {
		for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
			_cleanup_free_ char *copy = malloc(in.len);
			struct dbus_message m;

			memcpy(copy, in.data, in.len);
			copy[i] = (char)values[v];
			ssize_t r = dbus_parse(copy, in.len, &m);

			assert_true(r == -EBADMSG || (r >= 0 && r <= (ssize_t)in.len));
			if (r > 0)
				read_all(&m);
		}
	}
	struct dbus_message m;

	assert_int_equal(dbus_parse("B\1\0\1\0\0\0\0\0\0\0\1\0\0\0\0", 16, &m), -EBADMSG);
	assert_int_equal(dbus_parse("l\1\0\1\xff\xff\xff\x7f\1\0\0\0\0\0\0\0", 16, &m), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marshal),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_wrong),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
