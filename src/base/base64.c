/* Base64: see base64.h. Pure; what is decoded may be hostile. */
#include "base/base64.h"

#include <errno.h>
#include <stdlib.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *data, size_t len)
{
	const unsigned char *p = data;
	char *text = malloc(len / 3 * 4 + 5);
	size_t n = 0;

	if (!text)
		return NULL;
	for (size_t i = 0; i < len; i += 3) {
		unsigned v = (unsigned)p[i] << 16 | (i + 1 < len ? (unsigned)p[i + 1] << 8 : 0) |
			     (i + 2 < len ? p[i + 2] : 0);

		text[n++] = digits[v >> 18];
		text[n++] = digits[v >> 12 & 63];
		text[n++] = i + 1 < len ? digits[v >> 6 & 63] : '=';
		text[n++] = i + 2 < len ? digits[v & 63] : '=';
	}
	text[n] = '\0';
	return text;
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_decode(const char *text, size_t len, char **ret, size_t *ret_len)
{
	size_t pad = 0, n = 0;
	char *out;

	if (len % 4)
		return -EINVAL;
	while (pad < 2 && pad < len && text[len - 1 - pad] == '=')
		pad++;
	out = malloc(len / 4 * 3 + 1);
	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < len; i += 4) {
		unsigned v = 0;

		for (size_t j = 0; j < 4; j++) {
			int d = i + j < len - pad ? value_of(text[i + j]) : 0;

			if (d < 0) {
				free(out);
				return -EINVAL;
			}
			v = v << 6 | (unsigned)d;
		}
		out[n++] = (char)(v >> 16);
		out[n++] = (char)(v >> 8);
		out[n++] = (char)v;
	}
	n -= pad;
	out[n] = '\0';
	*ret = out;
	*ret_len = n;
	return 0;
}
