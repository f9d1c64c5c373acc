/* A process of the supervisor's becomes one of the box's: see isolation_enter().
 *
 * Runs in a fork of the supervisor, single-threaded, first with its privileges, then with none. The
 * box is alive and hostile: paths in it may lead elsewhere than the plan meant, and its processes
 * may do to ours what the kernel lets them: it is in another process namespace, so they neither see
 * nor signal it, and not dumpable. */
#include "process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "confine/landlock.h"

#define STAGE "isolation"

/* The box's own rules. A place that is not where the plan put it any more, because the box moved
 * what was around it, is left out, which allows less. */
static int lock_paths(const struct plan *plan, const int *readable, size_t n, struct pale_err *err)
{
	_cleanup_landlock_ struct landlock *l = NULL;
	int r;

	if (!plan->landlock)
		return 0;
	r = landlock_new(&plan->host.landlock, &l, err);
	for (size_t i = 0; r == 0 && i < plan->nrules; i++) {
		_cleanup_close_ int fd =
			fd_openat2(AT_FDCWD, plan->rules[i].path, O_PATH, 0, RESOLVE_NO_SYMLINKS);

		if (fd >= 0)
			r = landlock_allow_path(l, fd, plan->rules[i].access, err);
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		if (readable[i] >= 0)
			r = landlock_allow_path(l, readable[i], LANDLOCK_READ, err);
	return r < 0 ? r : landlock_restrict_self(l, err);
}

int isolation_enter(const struct box *box, const struct plan *plan, const int *readable, size_t n,
		    struct pale_err *err)
{
	struct stat want, have;
	int r;

	if (box->reaped || box->pidfd < 0 || fstat(box->root_fd, &want) < 0)
		return err_set(err, PALE_E_CONFLICT, STAGE, 0, "the box has ended");
	if (setns(box->pidfd, CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot enter the box");
	/* Entering changed the root; nothing that we hold leads out of it but what the caller
	 * closes. */
	if (chdir("/") < 0 || stat("/", &have) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot enter the box's root");
	if (have.st_dev != want.st_dev || have.st_ino != want.st_ino)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "this is not the box's root");
	r = privileges_drop(plan, false, err);
	if (r == 0)
		r = lock_paths(plan, readable, n, err);
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		r = err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot forbid dumps");
	return r;
}
