/* Paths of HTTP requests, and the globs that rules name them with: see network.h. Runs in the
 * egress broker on each request of a host whose rules have paths: hostile bytes, bounded by the
 * request's size. */
#include "policy/network.h"

#include <string.h>

#include "base/str.h"

bool network_glob_matches(const char *glob, const char *path)
{
	/* Where to go on after the last `**` and the last `*`; one of each is enough, since an
	 * earlier one that took more would only leave less for what follows. */
	const char *any_glob = NULL, *any_path = NULL, *one_glob = NULL, *one_path = NULL;

	for (;;) {
		if (glob[0] == '*' && glob[1] == '*') {
			glob += strspn(glob, "*");
			any_glob = glob;
			any_path = path;
			one_glob = NULL;
		} else if (*glob == '*') {
			one_glob = ++glob;
			one_path = path;
		} else if (*glob == *path) {
			if (!*path)
				return true;
			glob++;
			path++;
		} else if (one_glob && *one_path && *one_path != '/') {
			glob = one_glob;
			path = ++one_path;
		} else if (any_glob && *any_path) {
			glob = any_glob;
			path = ++any_path;
			one_glob = NULL;
		} else {
			return false;
		}
	}
}

static int hex(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte at the front of *at, decoded; *at goes behind it. -1: a broken encoding. */
static int next_byte(const unsigned char **at, const unsigned char *end, bool *ret_encoded)
{
	const unsigned char *p = *at;
	int high, low;

	*ret_encoded = *p == '%';
	if (*p != '%') {
		*at = p + 1;
		return *p;
	}
	if (end - p < 3)
		return -1;
	high = hex(p[1]);
	low = hex(p[2]);
	*at = p + 3;
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static const char *ambiguous_byte(int c, bool encoded)
{
	if (c < 0)
		return "a broken percent-encoding";
	if (c == 0)
		return "a NUL byte";
	if (c < 0x20 || c == 0x7f)
		return "a control character";
	if (c == ' ' && !encoded)
		return "a blank";
	if (c == '\\')
		return "a backslash";
	if (c == '/' && encoded)
		return "an encoded slash";
	if (c == ';')
		return "a `;`";
	/* Encoded they belong to the path; as they are they would end it. */
	if ((c == '?' || c == '#') && !encoded)
		return "a `?` or `#`";
	return NULL;
}

/* What is wrong with the segment that lies before the end of the text. */
static const char *ambiguous_segment(const char *segment, size_t n, bool last)
{
	if (n == 0 && !last)
		return "an empty segment";
	if ((n == 1 && segment[0] == '.') || (n == 2 && segment[0] == '.' && segment[1] == '.'))
		return "a dot segment (. or ..)";
	return NULL;
}

int network_path_normalise(const char *path, size_t len, char *ret, size_t size,
			   const char **ret_why)
{
	const unsigned char *at = (const unsigned char *)path, *end = at + len;
	size_t used = 0, segment = 1;
	const char *why = NULL;

	if (len == 0 || *path != '/')
		why = "no `/` at its beginning";
	while (!why && at < end) {
		bool encoded;
		int c = next_byte(&at, end, &encoded);

		why = ambiguous_byte(c, encoded);
		if (!why && c == '/' && used > 0) {
			why = ambiguous_segment(ret + segment, used - segment, false);
			segment = used + 1;
		}
		/* "%252e": a server that decodes once more sees another path. */
		if (!why && used >= 2 && ret[used - 2] == '%' &&
		    hex((unsigned char)ret[used - 1]) >= 0 && hex((unsigned char)c) >= 0)
			why = "a double percent-encoding";
		if (!why && used + 1 >= size)
			return -ENAMETOOLONG;
		if (!why)
			ret[used++] = (char)c;
	}
	/* Also overlong forms of "." and "/", which old servers took for these. */
	if (!why && str_utf8_prefix(ret, used) != used)
		why = "bytes that are not UTF-8";
	if (!why && used)
		why = ambiguous_segment(ret + segment, used - segment, true);
	if (why) {
		*ret_why = why;
		return -EINVAL;
	}
	ret[used] = '\0';
	return 0;
}
