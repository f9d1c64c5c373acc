/* Base64 and percent-encoding.
 *
 * Process: the broker, confined. Hostile: what is decoded. */
#include "egress/http/encode.h"

#include <string.h>

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int encode_base64(struct buf *b, const void *data, size_t len, bool url)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		unsigned v = (unsigned)p[i] << 16 | (n > 1 ? (unsigned)p[i + 1] << 8 : 0) |
			     (n > 2 ? p[i + 2] : 0);
		char out[4];

		for (unsigned k = 0; k < 4; k++) {
			out[k] = k <= n ? base64[v >> (18 - 6 * k) & 63] : '=';
			if (url && out[k] == '+')
				out[k] = '-';
			if (url && out[k] == '/')
				out[k] = '_';
		}
		if (buf_add(b, out, url ? n + 1 : 4) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int base64_value(char c)
{
	const char *at;

	if (c == '-')
		return 62;
	if (c == '_')
		return 63;
	at = c ? strchr(base64, c) : NULL;
	return at ? (int)(at - base64) : -1;
}

int decode_base64(struct buf *b, const char *s, size_t len)
{
	unsigned bits = 0, v = 0;

	while (len && s[len - 1] == '=')
		len--;
	for (size_t i = 0; i < len; i++) {
		int six = base64_value(s[i]);
		char c;

		if (six < 0)
			return -EINVAL;
		v = (v << 6 | (unsigned)six) & 0xffff;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		c = (char)(v >> bits & 0xff);
		if (buf_add(b, &c, 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

int encode_percent(struct buf *b, const char *s, size_t len)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		char out[3] = {'%', hex[c >> 4], hex[c & 15]};
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || (c && strchr("-._~", c));

		if (plain ? buf_add(b, s + i, 1) : buf_add(b, out, 3))
			return -ENOMEM;
	}
	return 0;
}

int encode_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int decode_percent(struct buf *b, const char *s, size_t len, bool plus)
{
	for (size_t i = 0; i < len; i++) {
		char c = s[i];

		if (c == '%' && len - i > 2 && encode_hex_value(s[i + 1]) >= 0 &&
		    encode_hex_value(s[i + 2]) >= 0) {
			c = (char)(encode_hex_value(s[i + 1]) << 4 | encode_hex_value(s[i + 2]));
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		if (buf_add(b, &c, 1) < 0)
			return -ENOMEM;
	}
	return 0;
}
