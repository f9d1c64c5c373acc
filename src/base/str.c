/* Hostile strings: see str.h. */
#include "str.h"

#include <stdint.h>
#include <string.h>

static size_t utf8_char(const unsigned char *s, size_t len)
{
	size_t n;
	uint32_t c;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2, c = s[0] & 0x1f;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3, c = s[0] & 0x0f;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4, c = s[0] & 0x07;
	else
		return 0;
	if (len < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)) ||
	    (c >= 0xd800 && c <= 0xdfff))
		return 0;
	return n;
}

size_t str_utf8_prefix(const char *s, size_t len)
{
	size_t at = 0;

	while (at < len) {
		size_t n = utf8_char((const unsigned char *)s + at, len - at);

		if (!n)
			break;
		at += n;
	}
	return at;
}

/* Characters that are valid UTF-8 and still not shown as they are: C1 controls, and the marks that
 * reorder or hide text on a screen (bidirectional overrides, zero-width characters, separators). */
static bool deceptive(const unsigned char *s, size_t n)
{
	if (n == 2)
		return s[0] == 0xc2 && s[1] < 0xa0;
	if (n != 3)
		return false;
	if (s[0] == 0xe2 && s[1] == 0x80)
		return (s[2] >= 0x8b && s[2] <= 0x8f) || (s[2] >= 0xa8 && s[2] <= 0xae);
	if (s[0] == 0xe2 && s[1] == 0x81)
		return s[2] >= 0xa0 && s[2] <= 0xaf;
	return s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf;
}

int str_escape(struct buf *b, const char *s, size_t len)
{
	static const char named[] = "\aa\bb\tt\nn\vv\ff\rr\"\"\\\\";

	for (size_t i = 0; i < len;) {
		const unsigned char *p = (const unsigned char *)s + i;
		size_t n = utf8_char(p, len - i);
		const char *name = NULL;

		for (size_t k = 0; n == 1 && k + 1 < sizeof(named) - 1; k += 2)
			if (named[k] == (char)*p)
				name = &named[k + 1];
		if (name) {
			buf_add(b, "\\", 1);
			buf_add(b, name, 1);
		} else if (n == 0 || (n == 1 && (*p < 0x20 || *p == 0x7f)) || deceptive(p, n)) {
			for (size_t k = 0; k < (n ? n : 1); k++)
				buf_addf(b, "\\x%02x", p[k]);
		} else {
			buf_add(b, p, n);
		}
		i += n ? n : 1;
	}
	return b->failed ? -ENOSPC : 0;
}

const char *str_escape_into(char *out, size_t size, const char *s, size_t len)
{
	/* Worst case four output bytes an input byte: no more than size / 1 input bytes matter. */
	bool cut = len > size;
	_cleanup_buf_ struct buf b = BUF_INIT(size * 4 + 4);

	if (size == 0)
		return out;
	str_escape(&b, s, cut ? size : len);
	if (!cut && b.len < size) {
		memcpy(out, b.data ? b.data : "", b.len + 1);
	} else {
		size_t keep = size > 4 ? size - 4 : 0;

		if (keep > b.len)
			keep = b.len;
		keep = str_utf8_prefix(b.data ? b.data : "", keep);
		if (keep)
			memcpy(out, b.data, keep);
		snprintf(out + keep, size - keep, "...");
	}
	return out;
}

struct str_quoted str_quote(const char *s)
{
	struct str_quoted q;

	q.text[0] = '"';
	str_escape_into(q.text + 1, sizeof(q.text) - 2, s, strlen(s));
	strncat(q.text, "\"", sizeof(q.text) - strlen(q.text) - 1);
	return q;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

size_t str_distance(const char *a, const char *b, size_t limit)
{
	enum { MAX = 64 };
	size_t n = strlen(a), m = strlen(b);
	size_t rows[3][MAX + 1];

	if (n > MAX || m > MAX)
		return limit + 1;
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *now = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t best = up[j - 1] + (a[i - 1] != b[j - 1]);

			if (up[j] + 1 < best)
				best = up[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    up2[j - 2] + 1 < best)
				best = up2[j - 2] + 1;
			now[j] = best;
		}
	}
	return rows[n % 3][m] > limit ? limit + 1 : rows[n % 3][m];
}
