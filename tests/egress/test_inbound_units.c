/* What the broker looks at in a socket that came out of the box for a published port: whether it is
 * connected, and to that port of loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Before cmocka, which has a macro fail(). */
#include "../../src/egress/inbound.c"

#include <cmocka.h>

static uint16_t port_of(int fd, int family)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	return ntohs(family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port
				       : ((struct sockaddr_in6 *)&at)->sin6_port);
}

static void connected_to_its_port(void **state)
{
	static const struct {
		int family;
		const char *address;
		bool loopback;
	} rows[] = {{AF_INET, "127.0.0.1", true},
		    {AF_INET6, "::1", true},
		    {AF_INET, "127.0.0.2", false}};
	char text[INET6_ADDRSTRLEN];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int family = rows[i].family, l = socket(family, SOCK_STREAM, 0),
		    fd = socket(family, SOCK_STREAM, 0);
		struct sockaddr_storage at = {.ss_family = (sa_family_t)family};
		socklen_t len = sizeof(at);
		uint16_t port;

		inet_pton(family, rows[i].address,
			  family == AF_INET ? (void *)&((struct sockaddr_in *)&at)->sin_addr
					    : (void *)&((struct sockaddr_in6 *)&at)->sin6_addr);
		assert_int_equal(bind(l, (struct sockaddr *)&at,
				      family == AF_INET ? sizeof(struct sockaddr_in)
							: sizeof(struct sockaddr_in6)),
				 0);
		assert_int_equal(listen(l, 1), 0);
		port = port_of(l, family);
		assert_int_equal(check_peer(fd, port, text), -ENOTCONN);
		assert_int_equal(check_peer(l, port, text), -ENOTCONN);
		assert_int_equal(getsockname(l, (struct sockaddr *)&at, &len), 0);
		assert_int_equal(connect(fd, (struct sockaddr *)&at, len), 0);
		assert_int_equal(check_peer(fd, port, text), rows[i].loopback ? 0 : -EPROTO);
		if (rows[i].loopback)
			assert_string_equal(text, rows[i].address);
		assert_int_equal(check_peer(fd, (uint16_t)(port + 1), text), -EPROTO);
		close(fd);
		close(l);
	}
}

static void other_kinds(void **state)
{
	int pair[2];
	char text[INET6_ADDRSTRLEN];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(check_peer(pair[0], 80, text), -EPROTO);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connected_to_its_port),
		cmocka_unit_test(other_kinds),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
