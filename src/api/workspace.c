/* Workspaces for the library's callers: see pale.h. Runs in the caller's process with its rights;
 * what is kept came from a box, and is read by src/files. */
#include "api.h"

#include "files/workspace.h"

#define STAGE "files"

typedef int workspace_fn(const char *run, const struct pale_workspace_options *options, FILE *out,
			 struct pale_workspace_totals *ret, struct pale_err *err);

static int with_options(workspace_fn *fn, const char *run,
			const struct pale_workspace_options *options, FILE *out,
			struct pale_workspace_totals *ret, struct pale_err *err)
{
	struct pale_workspace_options o = {0};
	struct pale_workspace_totals ignored;
	int r;

	r = api_take(&o, sizeof(o), options, "struct pale_workspace_options", err);
	return r < 0 ? r : fn(run, &o, out, ret ? ret : &ignored, err);
}

int pale_workspace_diff(const char *run, const struct pale_workspace_options *options, FILE *out,
			struct pale_workspace_totals *ret, struct pale_err *err)
{
	NEED_ERR(err);
	return with_options(workspace_diff, run, options, out, ret, err);
}

int pale_workspace_apply(const char *run, const struct pale_workspace_options *options, FILE *out,
			 struct pale_workspace_totals *ret, struct pale_err *err)
{
	NEED_ERR(err);
	return with_options(workspace_apply, run, options, out, ret, err);
}

int pale_workspace_discard(const char *run, struct pale_err *err)
{
	NEED_ERR(err);

	return workspace_discard(run, err);
}

int pale_workspace_find(const char *run, char ret[PALE_ID_SIZE], struct pale_err *err)
{
	NEED_ERR(err);
	_cleanup_workspace_ struct workspace w = WORKSPACE_NONE;
	int r = workspace_open(run, NULL, 0, &w, err);

	if (r == 0)
		snprintf(ret, PALE_ID_SIZE, "%s", w.kept.id);
	return r;
}
