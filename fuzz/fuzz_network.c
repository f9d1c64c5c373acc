/* Names, patterns, globs and paths from hostile bytes. The input is split at newlines: a name, a
 * glob, a path. What is accepted as a name must be in the one form and no address; the glob matcher
 * must say what a plain one says; a path that is accepted must leave nothing to disagree about. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/network.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name, size_t len)
{
	char form[NETWORK_HOST_MAX + 1], again[NETWORK_HOST_MAX + 1];
	struct in_addr a;
	size_t n;

	if (network_host_normalise(name, len, form) < 0)
		return;
	n = strlen(form);
	if (n == 0 || n > NETWORK_HOST_MAX || inet_aton(form, &a) ||
	    form[strspn(form, "abcdefghijklmnopqrstuvwxyz0123456789-_.")] || form[0] == '.' ||
	    form[n - 1] == '.' || strstr(form, ".."))
		abort();
	if (network_host_normalise(form, n, again) < 0 || strcmp(form, again) != 0)
		abort();
	if (!network_host_matches(form, form) || network_host_matches("*.example", "example"))
		abort();
	/* A wildcard covers what ends in it on a label boundary, and nothing else. */
	if (network_host_matches("*.b.a", form) != (n > 4 && strcmp(form + n - 4, ".b.a") == 0))
		abort();
}

/* The plain way: which prefixes of the path does a prefix of the glob match? */
static bool plainly(const char *glob, const char *path)
{
	size_t n = strlen(path);
	_cleanup_free_ bool *now = calloc(n + 1, 1);
	bool result;

	if (!now)
		abort();
	now[0] = true;
	for (; *glob; glob++) {
		bool any = glob[0] == '*' && glob[1] == '*', one = *glob == '*', before = false;

		if (any)
			glob += strspn(glob, "*") - 1;
		for (size_t i = 0; i <= n; i++) {
			bool was = now[i];

			if (any)
				now[i] = was || (i > 0 && now[i - 1]);
			else if (one)
				now[i] = was || (i > 0 && now[i - 1] && path[i - 1] != '/');
			else
				now[i] = i > 0 && before && path[i - 1] == *glob;
			before = was;
		}
	}
	result = now[n];
	return result;
}

static void check_path(const char *glob, const char *path, size_t len)
{
	char form[512];
	const char *why = NULL;
	int r = network_path_normalise(path, len, form, sizeof(form), &why);

	if (r == -EINVAL && !why)
		abort();
	if (network_glob_matches(glob, path) != plainly(glob, path))
		abort();
	if (r < 0)
		return;
	if (form[0] != '/' || strstr(form, "//") || strpbrk(form, "\\;\n\r") ||
	    strstr(form, "/../") || strstr(form, "/./"))
		abort();
	if (strlen(form) > len)
		abort();
	if (network_glob_matches(glob, form) != plainly(glob, form) ||
	    !network_glob_matches("/**", form))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = malloc(size + 1);
	char *glob, *path;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	glob = memchr(text, '\n', size);
	check_name(text, glob ? (size_t)(glob - text) : size);
	if (!glob)
		return 0;
	*glob++ = '\0';
	path = memchr(glob, '\n', size - (size_t)(glob - text));
	if (!path)
		return 0;
	*path++ = '\0';
	if (strlen(glob) < 256 && size < 4096)
		check_path(glob, path, size - (size_t)(path - text));
	return 0;
}
