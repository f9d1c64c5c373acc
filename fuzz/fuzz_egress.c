/* What a box may send to the broker before anybody has looked at it, each by its own parser; the
 * first byte chooses: DNS queries, TLS hellos, SOCKS, heads of proxy requests, first bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/dns_wire.h"
#include "egress/inspect.h"
#include "egress/proxy_wire.h"
#include "egress/tls_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
	if (!ok)
		__builtin_trap();
}

/* A normalised name is what it says: letters, digits, `-`, `_` and dots, whole. */
static void whole_name(const char *name)
{
	char again[NETWORK_HOST_MAX + 1];

	must(strlen(name) <= NETWORK_HOST_MAX);
	must(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == strlen(name));
	if (*name) {
		must(network_host_normalise(name, strlen(name), again) == 0);
		must(strcmp(name, again) == 0);
	}
}

static void dns(const uint8_t *data, size_t size)
{
	struct dns_query q, again;
	struct dns_answer a;
	struct in6_addr address;
	struct in_addr v4 = {0x01020304};
	int family;

	if (dns_parse(data, size, &q) < 0)
		return;
	must(strlen(q.name) <= DNS_NAME_MAX);
	must(q.question_len <= sizeof(q.question));
	(void)dns_reverse(q.name, &family, &address);
	dns_begin(&a, &q);
	if (q.code == DNS_OK) {
		dns_add_a(&a, &v4, 1);
		dns_add_aaaa(&a, &in6addr_loopback, 1);
		dns_add_ptr(&a, q.name, 1);
	}
	dns_finish(&a, &q, q.code, 1);
	must(a.len <= sizeof(a.data) && a.len >= 12);
	/* The answer repeats the question. */
	a.data[2] &= 0x7f;
	must(dns_parse(a.data, a.len, &again) == 0);
	if (q.question_len && q.opcode == 0) {
		must(strcmp(q.name, again.name) == 0);
		must(q.type == again.type);
	}
}

static void hello(const uint8_t *data, size_t size)
{
	struct hello whole, part;
	enum hello_state state = hello_parse(data, size, &whole);

	whole_name(whole.name);
	must(!(whole.name[0] && whole.name_broken));
	/* What a beginning gives is never taken back, however the bytes arrive. */
	for (size_t n = 0; n < size; n = n < 64 ? n + 1 : n * 2) {
		enum hello_state early = hello_parse(data, n, &part);

		must(early == HELLO_MORE || early == state ||
		     (early == HELLO_OK && state == HELLO_BROKEN));
	}
}

static void socks(const uint8_t *data, size_t size)
{
	struct proxy_target t = {0};
	uint8_t method = 0, command = 0;
	size_t len = 0;

	if (socks5_greeting(data, size, &method, &len) == PROXY_OK)
		must(len <= size);
	if (socks5_login(data, size, &len) == PROXY_OK)
		must(len <= size);
	if (socks5_request(data, size, &command, &t) == PROXY_OK) {
		must(t.len <= size && t.port && (t.host[0] || t.family));
		whole_name(t.host);
	}
	if (socks4_request(data, size, &command, &t) == PROXY_OK) {
		must(t.len <= size && t.port && (t.host[0] || t.family));
		whole_name(t.host);
	}
}

static void head(const char *data, size_t size)
{
	struct proxy_target t = {0};
	struct inspect_head h;
	enum proxy_form form = FORM_ORIGIN;

	if (http_proxy_head(data, size, &form, &t) == PROXY_OK) {
		must(t.len <= size);
		if (form == FORM_CONNECT)
			must(t.port && (t.host[0] || t.family));
		whole_name(t.host);
	}
	(void)inspect_head_parse(data, size, &h);
	must(strlen(h.method) < sizeof(h.method) && strlen(h.path) < sizeof(h.path) &&
	     strlen(h.accept) < sizeof(h.accept));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size < 1 || size > 20000)
		return 0;
	/* Exactly as long as it is, so that a read behind its end is seen. */
	copy = malloc(size - 1 ? size - 1 : 1);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	switch (data[0]) {
	case 'd': dns(copy, size - 1); break;
	case 't': hello(copy, size - 1); break;
	case 's': socks(copy, size - 1); break;
	case 'h': head((const char *)copy, size - 1); break;
	default: (void)inspect_kind_of(copy, size - 1); break;
	}
	free(copy);
	return 0;
}
