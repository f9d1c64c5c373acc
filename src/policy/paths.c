/* Paths of a policy: see paths.h. Runs where policies are read, with the caller's rights. A path
 * that passes here may still be a symbolic link on the host: the plan opens it and decides on what
 * it finds. */
#include "policy/paths.h"

#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

bool path_has_dotdot(const char *path)
{
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");

		if (n == 2 && p[0] == '.' && p[1] == '.')
			return true;
		p += n;
		p += strspn(p, "/");
	}
	return false;
}

int path_absolute(char **ret, const char *path, const char *base, bool dotdot, struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(PATH_MAX - 1);
	const char *parts[2] = {*path == '/' ? "" : base, path};

	if (!*path)
		return err_set(err, PALE_E_POLICY, "policy", 0, "an empty path");
	/* Written for a shell, it would become a directory named "~" under base. */
	if (str_starts(path, "~/") || str_starts(path, "$HOME") || str_starts(path, "${"))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: ~ and variables are not expanded: write the path itself (or, "
			       "if such a "
			       "name is meant, ./ before it)",
			       QUOTED(path));
	if (!dotdot && path_has_dotdot(path))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: \"..\" cannot be part of a path in the box: write the absolute "
			       "path, and the host's with `from`",
			       QUOTED(path));
	for (size_t i = 0; i < 2; i++) {
		for (const char *p = parts[i]; *p;) {
			size_t n;

			p += strspn(p, "/");
			n = strcspn(p, "/");
			if (n > NAME_MAX)
				return err_set(err, PALE_E_POLICY, "policy", 0,
					       "%s: a name in it is longer than %d bytes",
					       QUOTED(path), NAME_MAX);
			if (n && !(n == 1 && *p == '.')) {
				buf_add(&b, "/", 1);
				buf_add(&b, p, n);
			}
			p += n;
		}
	}
	if (b.len == 0)
		buf_add(&b, "/", 1);
	if (b.failed)
		return err_set(err, PALE_E_POLICY, "policy", 0, "%s: the path is too long",
			       QUOTED(path));
	*ret = take_ptr(b.data);
	return 0;
}

int path_without_dotdot(char **ret, const char *path, struct pale_err *err)
{
	_cleanup_free_ char *prefix = NULL, *real = NULL, *joined = NULL;
	const char *rest = path;

	for (const char *p = path; (p = strstr(p, "/..")) != NULL; p += 3)
		if (p[3] == '/' || p[3] == '\0')
			rest = p + 3;
	prefix = strndup(path, (size_t)(rest - path));
	if (!prefix)
		return err_nomem(err, "policy");
	if (*prefix) {
		real = realpath(prefix, NULL);
		if (!real)
			return err_set(err, PALE_E_POLICY, "policy", errno, "cannot follow %s",
				       QUOTED(prefix));
	}
	if (asprintf(&joined, "%s%s", real ? real : "", rest) < 0) {
		joined = NULL;
		return err_nomem(err, "policy");
	}
	return path_absolute(ret, joined, "", false, err);
}

bool path_inside(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return true;
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Places that the box makes itself: `below` if nothing may stand in them either. */
static const struct {
	const char *path;
	bool below;
	const char *why;
} reserved_targets[] = {
	{"/", false, "it is the box's own root"},
	{"/proc", true, "the box has its own"},
	{"/sys", true, "it shows the host's devices, and no box has it"},
	{"/dev", true, "the box has its own"},
	{"/etc", false, "the box has its own; single files and directories in it can be given"},
	{"/usr", true,
	 "it is the image's, read-only, in which nothing can be mounted: use another "
	 "path, such as one in /opt"},
	{"/bin", true, "it leads into /usr"},
	{"/sbin", true, "it leads into /usr"},
	{"/lib", true, "it leads into /usr"},
	{"/lib32", true, "it leads into /usr"},
	{"/lib64", true, "it leads into /usr"},
	{"/libx32", true, "it leads into /usr"},
};

int path_check_target(const char *path, enum policy_access access, struct pale_err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(reserved_targets); i++) {
		const char *reserved = reserved_targets[i].path;

		/* What is there already can be hidden in /usr: that needs no new mount point. */
		bool below = reserved_targets[i].below &&
			     !(access == ACCESS_HIDE && strcmp(reserved, "/usr") == 0);

		if (strcmp(path, reserved) == 0 || (below && path_inside(path, reserved)))
			return err_set(err, PALE_E_POLICY, "policy", 0,
				       "%s cannot be a path of `files`: %s%s%s", QUOTED(path),
				       strcmp(path, reserved) == 0 ? "" : reserved,
				       strcmp(path, reserved) == 0 ? "" : ": ",
				       reserved_targets[i].why);
	}
	return 0;
}

int path_check_source(const char *from, struct pale_err *err)
{
	static const char *const refused[] = {"/proc", "/sys", "/dev"};

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (path_inside(from, refused[i]))
			return err_set(err, PALE_E_POLICY, "policy", 0,
				       "%s of the host cannot be shown: %s leads to the host's "
				       "processes and devices",
				       QUOTED(from), refused[i]);
	return 0;
}
