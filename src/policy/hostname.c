/* Host names of rules and of what the box asks for: see network.h. Runs in the supervisor, and in
 * the egress broker on every name that comes from the box: hostile bytes, bounded by a name's
 * length. There is one form in which names are compared; what cannot be brought into it is refused,
 * so that two readers of one name (we, a resolver, a server) have nothing to disagree about. */
#include "policy/network.h"

#include <string.h>

#include "base/str.h"

enum { LABEL_MAX = 63 };

static bool digits(const char *s, size_t n, const char *set)
{
	for (size_t i = 0; i < n; i++)
		if (!strchr(set, s[i]))
			return false;
	return true;
}

/* inet_aton() and its relatives take one to four numbers, decimal, octal or hex. No real name ends
 * in a label that is a number (the WHATWG's URL standard has the same rule), so the last label
 * tells. */
static bool numeric(const char *label, size_t n)
{
	if (n >= 2 && label[0] == '0' && label[1] == 'x')
		return digits(label + 2, n - 2, "0123456789abcdef");
	return digits(label, n, "0123456789");
}

int network_host_normalise(const char *name, size_t len, char ret[static NETWORK_HOST_MAX + 1])
{
	size_t label = 0; /* where the current one begins */

	if (len && name[len - 1] == '.')
		len--;
	if (len == 0 || len > NETWORK_HOST_MAX)
		return -EINVAL;
	for (size_t i = 0; i <= len; i++) {
		char c = i < len ? name[i] : '.';

		if (c == '.') {
			if (i == label || i - label > LABEL_MAX)
				return -EINVAL;
			if (i == len && numeric(ret + label, i - label))
				return -EINVAL;
			label = i + 1;
		} else if (c >= 'A' && c <= 'Z') {
			c = (char)(c - 'A' + 'a');
		} else if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-' &&
			   c != '_') {
			return -EINVAL;
		}
		ret[i] = i < len ? c : '\0';
	}
	return 0;
}

int network_pattern_normalise(const char *text, char ret[static NETWORK_HOST_MAX + 3])
{
	size_t skip = str_starts(text, "*.") ? 2 : 0;

	memcpy(ret, "*.", 3);
	return network_host_normalise(text + skip, strlen(text + skip), ret + skip);
}

bool network_host_matches(const char *pattern, const char *host)
{
	size_t n, suffix;

	if (!str_starts(pattern, "*."))
		return strcmp(pattern, host) == 0;
	/* ".example.org" at the end, and something before it. */
	n = strlen(host);
	suffix = strlen(pattern) - 1;
	return n > suffix && memcmp(host + n - suffix, pattern + 1, suffix) == 0;
}

bool network_pattern_covers(const char *pattern, const char *other)
{
	if (strcmp(pattern, other) == 0)
		return true;
	if (!str_starts(other, "*."))
		return network_host_matches(pattern, other);
	/* "*.b.a" lies in "*.a", since what it covers ends in ".b.a"; but not in "b.a". */
	return str_starts(pattern, "*.") && network_host_matches(pattern, other + 2);
}
