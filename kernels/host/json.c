/* Text as JSON. The words come from file names and the like: what is not UTF-8 becomes U+FFFD. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static void add(struct json *j, const char *text, size_t len)
{
	size_t size = j->size ? j->size : 1024;
	char *bigger;

	while (size < j->len + len + 1)
		size *= 2;
	if (size != j->size && !j->failed) {
		bigger = realloc(j->text, size);
		j->failed = !bigger;
		if (bigger) {
			j->text = bigger;
			j->size = size;
		}
	}
	if (j->failed)
		return;
	memcpy(j->text + j->len, text, len);
	j->len += len;
	j->text[j->len] = '\0';
}

void json_add(struct json *j, const char *text)
{
	add(j, text, strlen(text));
}

/* Bytes of the UTF-8 sequence at s, 0 if it is none (RFC 3629). */
static size_t sequence(const unsigned char *s, size_t len)
{
	size_t n = s[0] < 0x80	 ? 1
		   : s[0] < 0xc2 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;

	if (n > len)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void json_add_string(struct json *j, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	char escaped[8];

	add(j, "\"", 1);
	for (size_t i = 0; i < len;) {
		size_t n = sequence(s + i, len - i);

		if (n == 0) {
			add(j, "\xef\xbf\xbd", 3);
			n = 1;
		} else if (s[i] == '"' || s[i] == '\\') {
			escaped[0] = '\\';
			escaped[1] = (char)s[i];
			add(j, escaped, 2);
		} else if (s[i] < 0x20 || s[i] == 0x7f) {
			snprintf(escaped, sizeof(escaped), "\\u%04x", s[i]);
			add(j, escaped, 6);
		} else {
			add(j, text + i, n);
		}
		i += n;
	}
	add(j, "\"", 1);
}
