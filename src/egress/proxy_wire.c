/* What clients say to a proxy: see proxy_wire.h. Runs in the broker. Every byte is hostile; lengths
 * come before what they count and are checked against what is there. Names go through
 * network_host_normalise(), which refuses NUL and all else that is not of a host name: a name that
 * is cut short somewhere else is how other proxies were fooled. */
#include "egress/proxy_wire.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static void set4(struct proxy_target *t, const uint8_t *address)
{
	t->host[0] = '\0';
	t->family = AF_INET;
	memset(&t->address, 0, sizeof(t->address));
	memcpy(&t->address, address, 4);
}

static void set6(struct proxy_target *t, const uint8_t *address)
{
	/* ::ffff:a.b.c.d is IPv4 in other clothes. */
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)address)) {
		set4(t, address + 12);
		return;
	}
	t->host[0] = '\0';
	t->family = AF_INET6;
	memcpy(&t->address, address, 16);
}

bool proxy_host(const char *text, size_t len, struct proxy_target *t)
{
	char copy[INET6_ADDRSTRLEN];
	uint8_t address[16];

	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
		if (!memchr(text, ':', len))
			return false;
	}
	if (len < sizeof(copy) && !memchr(text, '\0', len)) {
		memcpy(copy, text, len);
		copy[len] = '\0';
		if (inet_pton(AF_INET, copy, address) == 1) {
			set4(t, address);
			return true;
		}
		if (inet_pton(AF_INET6, copy, address) == 1) {
			set6(t, address);
			return true;
		}
	}
	t->family = 0;
	return network_host_normalise(text, len, t->host) == 0;
}

bool proxy_authority(const char *text, size_t len, struct proxy_target *t)
{
	const char *colon = memrchr(text, ':', len);
	size_t digits;
	unsigned port = 0;

	if (!colon)
		return false;
	digits = len - (size_t)(colon + 1 - text);
	if (digits == 0 || digits > 5)
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (colon[1 + i] < '0' || colon[1 + i] > '9')
			return false;
		port = port * 10 + (unsigned)(colon[1 + i] - '0');
	}
	if (port == 0 || port > 65535)
		return false;
	t->port = (uint16_t)port;
	len = (size_t)(colon - text);
	/* Without brackets an IPv6 address can't be told from its port. */
	if (len && text[0] != '[' && memchr(text, ':', len))
		return false;
	return proxy_host(text, len, t);
}

enum proxy_parsed socks5_greeting(const uint8_t *data, size_t len, uint8_t *ret_method,
				  size_t *ret_len)
{
	if (len < 1)
		return PROXY_MORE;
	if (data[0] != 5)
		return PROXY_BROKEN;
	if (len < 2 || len < 2u + data[1])
		return PROXY_MORE;
	*ret_method = 255;
	if (memchr(data + 2, 2, data[1]))
		*ret_method = 2;
	if (memchr(data + 2, 0, data[1]))
		*ret_method = 0;
	*ret_len = 2u + data[1];
	return PROXY_OK;
}

enum proxy_parsed socks5_login(const uint8_t *data, size_t len, size_t *ret_len)
{
	size_t at = 2;

	if (len < 1)
		return PROXY_MORE;
	if (data[0] != 1)
		return PROXY_BROKEN;
	if (len < 2)
		return PROXY_MORE;
	at += data[1];
	if (len < at + 1)
		return PROXY_MORE;
	at += 1u + data[at];
	if (len < at)
		return PROXY_MORE;
	*ret_len = at;
	return PROXY_OK;
}

enum proxy_parsed socks5_request(const uint8_t *data, size_t len, uint8_t *ret_command,
				 struct proxy_target *t)
{
	size_t at = 4, n;

	memset(t, 0, sizeof(*t));
	if (len < 1)
		return PROXY_MORE;
	if (data[0] != 5 || (len > 2 && data[2] != 0))
		return PROXY_BROKEN;
	if (len < 5)
		return PROXY_MORE;
	*ret_command = data[1];
	switch (data[3]) {
	case 1: n = 4; break;
	case 3: n = 1u + data[4]; break;
	case 4: n = 16; break;
	default: return PROXY_BROKEN;
	}
	if (len < at + n + 2)
		return PROXY_MORE;
	t->port = (uint16_t)(data[at + n] << 8 | data[at + n + 1]);
	t->len = at + n + 2;
	if (data[3] == 1)
		set4(t, data + at);
	else if (data[3] == 4)
		set6(t, data + at);
	else if (!proxy_host((const char *)data + at + 1, n - 1, t))
		return PROXY_BAD_NAME;
	return t->port ? PROXY_OK : PROXY_BAD_NAME;
}

enum proxy_parsed socks4_request(const uint8_t *data, size_t len, uint8_t *ret_command,
				 struct proxy_target *t)
{
	const uint8_t *user_end, *name, *name_end;

	memset(t, 0, sizeof(*t));
	if (len < 1)
		return PROXY_MORE;
	if (data[0] != 4)
		return PROXY_BROKEN;
	if (len < 9)
		return PROXY_MORE;
	*ret_command = data[1];
	t->port = (uint16_t)(data[2] << 8 | data[3]);
	user_end = memchr(data + 8, 0, len - 8 < 256 ? len - 8 : 256);
	if (!user_end)
		return len - 8 < 256 ? PROXY_MORE : PROXY_BROKEN;
	/* 0.0.0.x, x not 0: a name follows (4a). */
	if (data[4] || data[5] || data[6] || !data[7]) {
		set4(t, data + 4);
		t->len = (size_t)(user_end + 1 - data);
		return t->port ? PROXY_OK : PROXY_BAD_NAME;
	}
	name = user_end + 1;
	len -= (size_t)(name - data);
	name_end = memchr(name, 0, len < 256 ? len : 256);
	if (!name_end)
		return len < 256 ? PROXY_MORE : PROXY_BROKEN;
	t->len = (size_t)(name_end + 1 - data);
	if (!proxy_host((const char *)name, (size_t)(name_end - name), t) || !t->port)
		return PROXY_BAD_NAME;
	return PROXY_OK;
}

enum proxy_parsed http_proxy_head(const char *data, size_t len, enum proxy_form *ret_form,
				  struct proxy_target *t)
{
	static const char connect[] = "CONNECT ";
	const char *end = memmem(data, len, "\r\n\r\n", 4), *line_end, *target, *target_end;

	memset(t, 0, sizeof(*t));
	if (!end)
		return len < PROXY_HEAD_MAX ? PROXY_MORE : PROXY_BROKEN;
	t->len = (size_t)(end + 4 - data);
	line_end = memmem(data, t->len, "\r\n", 2);
	target = memchr(data, ' ', (size_t)(line_end - data));
	if (!target)
		return PROXY_BROKEN;
	target++;
	target_end = memchr(target, ' ', (size_t)(line_end - target));
	if (!target_end || (size_t)(line_end - target_end) < 8 ||
	    memcmp(target_end, " HTTP/1.", 8) != 0)
		return PROXY_BROKEN;
	if (t->len > sizeof(connect) - 1 && memcmp(data, connect, sizeof(connect) - 1) == 0) {
		*ret_form = FORM_CONNECT;
		return proxy_authority(target, (size_t)(target_end - target), t) ? PROXY_OK
										 : PROXY_BAD_NAME;
	}
	*ret_form = memmem(target, (size_t)(target_end - target), "://", 3) && *target != '/'
			    ? FORM_ABSOLUTE
			    : FORM_ORIGIN;
	return PROXY_OK;
}
