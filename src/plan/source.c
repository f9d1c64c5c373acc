/* Sources of entries: see source.h. Runs with the caller's rights, when a policy is checked and
 * before anything of a box is made. What lies at a source may be hostile and is only looked at with
 * stat(). */
#include "plan/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

static int fail(struct pale_err *err, const struct policy_file *f, int sys, const char *why)
{
	return err_set(err, PALE_E_POLICY, "plan", sys, "%s: %s %s", f->where ? f->where : "policy",
		       QUOTED(f->from), why);
}

/* A directory or a regular file; anything else is a way to a process or a device of the host. */
int source_find(const struct policy_file *f, char **ret_real, struct stat *ret,
		struct pale_err *err)
{
	_cleanup_free_ char *real = realpath(f->from, NULL);

	if (!real || stat(real, ret) < 0)
		return fail(err, f, errno, "cannot be mounted");
	if (!S_ISDIR(ret->st_mode) && !S_ISREG(ret->st_mode))
		return fail(err, f, 0,
			    "is a socket, FIFO or device, which leads to a process of the host: "
			    "only regular files and directories can be mounted");
	if (f->access == ACCESS_OVERLAY && !S_ISDIR(ret->st_mode))
		return fail(err, f, 0,
			    "is a file: `overlay` takes a directory (mount its directory, or use "
			    "access: read)");
	if (strcmp(real, "/") == 0)
		return fail(err, f, 0, "is the whole host; name the directories that are needed");
	*ret_real = take_ptr(real);
	return 0;
}
