/* Host names and addresses: one form for names, whatever tricks are in them, and what of the
 * address space is public. */
#include "policy/network.h"
#include "base/str.h"
#include <arpa/inet.h>
#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define LABEL63 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123"

/* A literal with its length, so that NUL can be in it. */
#define NAME(s) (s), sizeof(s) - 1

static void test_names(void **state)
{
	static const struct {
		const char *name;
		size_t len;
		const char *form; /* NULL: refused */
	} rows[] = {
		{NAME("example.com"), "example.com"},
		{NAME("EXAMPLE.Com"), "example.com"},
		{NAME("example.com."), "example.com"},
		{NAME("a"), "a"},
		{NAME("_acme-challenge.example.com"), "_acme-challenge.example.com"},
		{NAME("-x.example-.com"), "-x.example-.com"},
		{NAME("xn--mnchen-3ya.example"), "xn--mnchen-3ya.example"},
		{NAME("XN--MNCHEN-3YA.example"), "xn--mnchen-3ya.example"},
		{NAME("1.example"), "1.example"},
		{NAME("1e5"), "1e5"},
		{NAME("127.0.0.1.example"), "127.0.0.1.example"},
		{NAME("0xg"), "0xg"},
		{NAME("1.2.3.4a"), "1.2.3.4a"},
		{NAME(LABEL63 ".com"), LABEL63 ".com"},
		/* refused */
		{NAME(""), NULL},
		{NAME("."), NULL},
		{NAME(".."), NULL},
		{NAME("example.com.."), NULL},
		{NAME(".example.com"), NULL},
		{NAME("a..b"), NULL},
		{NAME(LABEL63 "4.com"), NULL},
		{NAME("evil.example\0.example.com"), NULL},
		{NAME("example.com\0"), NULL},
		{NAME("\0"), NULL},
		{NAME("exam ple.com"), NULL},
		{NAME(" example.com"), NULL},
		{NAME("example.com "), NULL},
		{NAME("example.com\n"), NULL},
		{NAME("example.com\r\nHost: x"), NULL},
		{NAME("example\t.com"), NULL},
		{NAME("example.com\x7f"), NULL},
		{NAME("m\xc3\xbcnchen.example"), NULL},
		{NAME("example\xe3\x80\x82"
		      "com"),
		 NULL},					/* an ideographic full stop */
		{NAME("\xef\xbd\x85xample.com"), NULL}, /* a full-width e */
		{NAME("exa\xc2\xadmple.com"), NULL},	/* a soft hyphen */
		{NAME("example.com\xff"), NULL},
		{NAME("user@example.com"), NULL},
		{NAME("example.com:443"), NULL},
		{NAME("example.com/x"), NULL},
		{NAME("example.com%00.x"), NULL},
		{NAME("*.example.com"), NULL},
		{NAME("[::1]"), NULL},
		{NAME("::1"), NULL},
		{NAME("fe80::1%lo"), NULL},
		/* addresses in any notation */
		{NAME("127.0.0.1"), NULL},
		{NAME("127.0.0.1."), NULL},
		{NAME("127.1"), NULL},
		{NAME("127.0.1"), NULL},
		{NAME("2130706433"), NULL},
		{NAME("0x7f000001"), NULL},
		{NAME("0X7F.1"), NULL},
		{NAME("0x7f.0x0.0x0.0x1"), NULL},
		{NAME("0177.0.0.1"), NULL},
		{NAME("017700000001"), NULL},
		{NAME("169.254.169.254"), NULL},
		{NAME("2852039166"), NULL},
		{NAME("0xa9fea9fe"), NULL},
		{NAME("0251.0376.0251.0376"), NULL},
		{NAME("0x"), NULL},
		{NAME("0"), NULL},
		{NAME("00000000000000000000000000000177.1"), NULL},
		{NAME("99999999999999999999"), NULL},
		{NAME("256.256.256.256"), NULL},
		{NAME("1.2.3.4.5"), NULL},
		{NAME("example.0x1"), NULL},
		{NAME("example.1"), NULL},
	};
	char out[NETWORK_HOST_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = network_host_normalise(rows[i].name, rows[i].len, out);

		if (r != (rows[i].form ? 0 : -EINVAL))
			fail_msg("%s: %d", QUOTED(rows[i].name), r);
		if (rows[i].form)
			assert_string_equal(out, rows[i].form);
	}
}

/* What the C library takes for an address is never a name. */
static void test_no_name_is_an_address(void **state)
{
	static const char *const parts[] = {"0",  "1",		"127",	     "0177", "0x7f",
					    "0x", "00",		"08",	     "255",  "256",
					    "a",  "0xffffffff", "4294967295"};
	struct in_addr a;

	(void)state;
	for (size_t n = 0; n < 13 * 13 * 13; n++) {
		char name[64], out[NETWORK_HOST_MAX + 1];

		snprintf(name, sizeof(name), "%s.%s.%s", parts[n % 13], parts[n / 13 % 13],
			 parts[n / 169]);
		for (char *p = name; p; p = strchr(p, '.')) {
			p += *p == '.';
			if (inet_aton(p, &a) && network_host_normalise(p, strlen(p), out) == 0)
				fail_msg("%s", p);
		}
	}
}

static void test_long_names(void **state)
{
	char name[300], out[NETWORK_HOST_MAX + 1];

	(void)state;
	for (size_t n = 0; n < sizeof(name); n++)
		name[n] = n % 2 ? '.' : 'a';
	assert_int_equal(network_host_normalise(name, 253, out), 0);
	assert_int_equal(strlen(out), 253);
	assert_int_equal(network_host_normalise(name, 254, out), 0); /* with its final dot */
	assert_int_equal(strlen(out), 253);
	assert_int_equal(network_host_normalise(name, 255, out), -EINVAL);
	assert_int_equal(network_host_normalise(name, 299, out), -EINVAL);
	memset(name, 'a', sizeof(name));
	assert_int_equal(network_host_normalise(name, 63, out), 0);
	assert_int_equal(network_host_normalise(name, 64, out), -EINVAL);
	assert_int_equal(network_host_normalise(name, 253, out), -EINVAL);
}

static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *host;
		bool matches;
	} rows[] = {
		{"example.com", "example.com", true},
		{"example.com", "a.example.com", false},
		{"example.com", "example.com.evil.example", false},
		{"example.com", "xexample.com", false},
		{"*.example.com", "a.example.com", true},
		{"*.example.com", "a.b.example.com", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", "evilexample.com", false},
		{"*.example.com", "evil-example.com", false},
		{"*.example.com", "a.example.com.evil.example", false},
		{"*.example.com", "a.example.co", false},
		{"*.com", "example.com", true},
		{"*.com", "com", false},
	};
	static const struct {
		const char *pattern, *other;
		bool covers;
	} covers[] = {
		{"*.a", "*.a", true},	    {"*.a", "*.b.a", true}, {"*.b.a", "*.a", false},
		{"*.a", "b.a", true},	    {"b.a", "*.a", false},  {"b.a", "b.a", true},
		{"*.b.a", "*.xb.a", false}, {"*.a", "a", false},
	};
	static const char *const wrong[] = {"*",    "*.",	 "*.*.a", "a.*", "*a.b",
					    "a*.b", "*.1.2.3.4", "",	  "**.a"};
	char out[NETWORK_HOST_MAX + 3];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (network_host_matches(rows[i].pattern, rows[i].host) != rows[i].matches)
			fail_msg("%s %s", rows[i].pattern, rows[i].host);
	for (size_t i = 0; i < ARRAY_SIZE(covers); i++)
		if (network_pattern_covers(covers[i].pattern, covers[i].other) != covers[i].covers)
			fail_msg("%s %s", covers[i].pattern, covers[i].other);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(network_pattern_normalise(wrong[i], out), -EINVAL);
	assert_int_equal(network_pattern_normalise("*.Example.COM.", out), 0);
	assert_string_equal(out, "*.example.com");
}

/* ---- addresses ---- */

static void test_public(void **state)
{
	static const struct {
		const char *address;
		bool is_public;
	} rows[] = {
		{"8.8.8.8", true},
		{"93.184.216.34", true},
		{"1.0.0.0", true},
		{"0.0.0.0", false},
		{"0.255.255.255", false},
		{"9.255.255.255", true},
		{"10.0.0.0", false},
		{"10.255.255.255", false},
		{"11.0.0.0", true},
		{"100.63.255.255", true},
		{"100.64.0.0", false},
		{"100.100.100.200", false},
		{"100.127.255.255", false},
		{"100.128.0.0", true},
		{"126.255.255.255", true},
		{"127.0.0.1", false},
		{"127.255.255.255", false},
		{"128.0.0.0", true},
		{"168.63.129.16", false},
		{"168.63.129.17", true},
		{"169.253.255.255", true},
		{"169.254.169.254", false},
		{"169.255.0.0", true},
		{"172.15.255.255", true},
		{"172.16.0.0", false},
		{"172.31.255.255", false},
		{"172.32.0.0", true},
		{"192.0.0.1", false},
		{"192.0.0.192", false},
		{"192.0.1.0", true},
		{"192.0.2.1", false},
		{"192.0.3.0", true},
		{"192.88.99.1", false},
		{"192.167.255.255", true},
		{"192.168.0.1", false},
		{"192.169.0.0", true},
		{"198.17.255.255", true},
		{"198.18.0.0", false},
		{"198.19.255.255", false},
		{"198.20.0.0", true},
		{"198.51.100.1", false},
		{"203.0.113.1", false},
		{"223.255.255.255", true},
		{"224.0.0.1", false},
		{"239.255.255.255", false},
		{"240.0.0.1", false},
		{"255.255.255.255", false},
		{"2606:2800:220:1::1", true},
		{"2a00:1450::1", true},
		{"::", false},
		{"::1", false},
		{"::7f00:1", false}, /* v4-compatible */
		{"::ffff:8.8.8.8", true},
		{"::ffff:127.0.0.1", false},
		{"::ffff:10.0.0.1", false},
		{"::ffff:169.254.169.254", false},
		{"::ffff:0:8.8.8.8", false}, /* SIIT */
		{"64:ff9b::8.8.8.8", true},
		{"64:ff9b::127.0.0.1", false},
		{"64:ff9b::169.254.169.254", false},
		{"64:ff9b::10.0.0.1", false},
		{"64:ff9b:0:0:0:1:808:808", false}, /* not within the /96 */
		{"64:ff9b:1::8.8.8.8", false},
		{"64:ff9b:1:fffe::8.8.8.8", false},
		{"2002:0808:0808::1", true},
		{"2002:7f00:0001::1", false},
		{"2002:a9fe:a9fe::1", false},
		{"2002:0a00:0001::1", false},
		{"2001:0:808:808::f7f7:f7f7", true},  /* Teredo: 8.8.8.8 by 8.8.8.8 */
		{"2001:0:808:808::80ff:fffe", false}, /* 127.0.0.1 by 8.8.8.8 */
		{"2001:0:7f00:1::f7f7:f7f7", false},  /* 8.8.8.8 by 127.0.0.1 */
		{"2001:0:808:808::5601:5601", false}, /* 169.254.169.254 */
		{"2001:2::1", false},
		{"2001:10::1", false},
		{"2001:20::1", false},
		{"2001:1ff::1", false},
		{"2001:200::1", true},
		{"2001:db8::1", false},
		{"3fff::1", false},
		{"3fff:1000::1", true},
		{"2606::5efe:8.8.8.8", true}, /* ISATAP */
		{"2606::5efe:10.0.0.1", false},
		{"2606::200:5efe:127.0.0.1", false},
		{"100::1", false},
		{"4000::1", false},
		{"5f00::1", false},
		{"fc00::1", false},
		{"fd00:ec2::254", false},
		{"fe80::1", false},
		{"fec0::1", false},
		{"ff02::1", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int family = strchr(rows[i].address, ':') ? AF_INET6 : AF_INET;
		struct in6_addr a;

		assert_int_equal(inet_pton(family, rows[i].address, &a), 1);
		if (network_address_public(family, &a) != rows[i].is_public)
			fail_msg("%s", rows[i].address);
	}
	assert_false(network_address_public(AF_UNIX, "xxxxxxxxxxxxxxxxxxxx"));
}

static void test_cidr(void **state)
{
	static const struct {
		const char *text, *form; /* NULL: refused */
	} rows[] = {
		{"10.0.0.0/8", "10.0.0.0/8"},
		{"192.0.2.1", "192.0.2.1"},
		{"192.0.2.1/32", "192.0.2.1"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"2001:DB8::/32", "2001:db8::/32"},
		{"2001:db8:0:0::1", "2001:db8::1"},
		{"::/0", "::/0"},
		{"::ffff:10.0.0.0/104", "::ffff:10.0.0.0/104"},
		{"10.0.0.1/8", NULL},
		{"2001:db8::1/64", NULL},
		{"10.0.0.0/33", NULL},
		{"::/129", NULL},
		{"10.0.0.0/", NULL},
		{"10.0.0.0/ 8", NULL},
		{"10.0.0.0/-1", NULL},
		{"10.0.0.0/8/8", NULL},
		{"10/8", NULL},
		{"010.0.0.0", NULL},
		{"0x7f.0.0.1", NULL},
		{"127.1", NULL},
		{"2130706433", NULL},
		{"fe80::1%lo", NULL},
		{"[::1]", NULL},
		{"", NULL},
		{"/8", NULL},
		{"a", NULL},
		{"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[NETWORK_CIDR_TEXT];
		struct network_cidr c;
		int r = network_cidr_parse(rows[i].text, &c);

		if (r != (rows[i].form ? 0 : -EINVAL))
			fail_msg("%s: %d", rows[i].text, r);
		if (rows[i].form)
			assert_string_equal(network_cidr_format(&c, text), rows[i].form);
	}
}

static void test_cidr_contains(void **state)
{
	static const struct {
		const char *range, *address;
		bool contains, reaches;
	} rows[] = {
		{"10.0.0.0/8", "10.255.0.1", true, true},
		{"10.0.0.0/8", "11.0.0.0", false, false},
		{"10.128.0.0/9", "10.127.255.255", false, false},
		{"10.128.0.0/9", "10.128.0.0", true, true},
		{"192.0.2.1", "192.0.2.1", true, true},
		{"192.0.2.1", "192.0.2.2", false, false},
		{"0.0.0.0/0", "8.8.8.8", true, true},
		{"10.0.0.0/8", "::ffff:10.0.0.1", true, true},
		{"10.0.0.0/8", "64:ff9b::10.0.0.1", false, true},
		{"10.0.0.0/8", "2002:0a00:0001::1", false, true},
		{"10.0.0.0/8", "2001:0:808:808::f5ff:fffe", false, true},
		{"10.0.0.0/8", "2606::5efe:10.0.0.1", false, true},
		{"10.0.0.0/8", "2606::1", false, false},
		{"2001:db8::/32", "2001:db8:ffff::1", true, true},
		{"2001:db8::/32", "2001:db9::1", false, false},
		{"::/0", "2001:db8::1", true, true},
		{"::/0", "10.0.0.1", false, false},
		{"0.0.0.0/0", "2001:db8::1", false, false},
		{"::ffff:10.0.0.0/104", "::ffff:10.0.0.1", true, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int family = strchr(rows[i].address, ':') ? AF_INET6 : AF_INET;
		struct network_cidr c;
		struct in6_addr a;

		assert_int_equal(network_cidr_parse(rows[i].range, &c), 0);
		assert_int_equal(inet_pton(family, rows[i].address, &a), 1);
		if (network_cidr_contains(&c, family, &a) != rows[i].contains ||
		    network_cidr_reaches(&c, family, &a) != rows[i].reaches)
			fail_msg("%s %s", rows[i].range, rows[i].address);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	      cmocka_unit_test(test_no_name_is_an_address),
		cmocka_unit_test(test_long_names),    cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_public),	      cmocka_unit_test(test_cidr),
		cmocka_unit_test(test_cidr_contains),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
