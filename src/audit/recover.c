/* Closing the runs whose supervisor was lost.
 *
 * Runs at the start of `pale run` and of every `pale audit`, with the caller's privileges; reads
 * logs that a crash may have left torn. Several processes may do this at once, and beside
 * supervisors that are just starting:
 *   - whoever holds the log's lock is the only one to touch the run;
 *   - active/<id> goes only after box.end is on disk, and is looked at again under the lock;
 *   - a supervisor that had made its log but not locked it yet finds it no longer empty, and stops.
 */
#include "audit/audit.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "audit/chain.h"
#include "audit/state.h"
#include "audit/ulid.h"
#include "audit/writer.h"
#include "base/fd.h"

#define STAGE	  "audit"
#define TORN_NAME "torn"
#define TORN_TEXT 4096u
#define YOUNG_S	  10 /* a run without a first line may still be starting */

static int fail(const char *id, int sys, const char *what, struct pale_err *err)
{
	return err_set(err, PALE_E_AUDIT, STAGE, sys, "closing the lost run %s: %s", id, what);
}

static time_t age_of(const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec - st->st_mtim.tv_sec;
}

/* Takes an unfinished last line off the file; the bytes stay in runs/<id>/torn, and *ret tells. */
static int take_torn(const char *id, int dir, int log, json_t **ret, struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(AUDIT_LINE_MAX);
	struct stat st;
	off_t from;
	int r;

	if (fstat(log, &st) < 0)
		return fail(id, errno, "looking at its log", err);
	off_t most = st.st_size < (off_t)AUDIT_LINE_MAX ? st.st_size : (off_t)AUDIT_LINE_MAX;
	char *to = buf_room(&b, (size_t)most);

	if (!to)
		return err_nomem(err, STAGE);
	from = st.st_size - most;
	if (pread(log, to, (size_t)most, from) != most)
		return fail(id, EIO, "reading its log", err);
	const char *nl = most ? memrchr(to, '\n', (size_t)most) : NULL;
	size_t whole = nl ? (size_t)(nl - to) + 1 : 0, torn = (size_t)most - whole;

	if (!torn)
		return 0;
	if (!nl && from)
		return fail(id, 0, "its last line has no beginning: the log was altered", err);
	/* The evidence is safe before the file is cut. */
	_cleanup_close_ int keep =
		openat(dir, TORN_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (keep < 0)
		return fail(id, errno, "keeping its torn last line", err);
	r = fd_write_all(keep, to + whole, torn);
	if (r < 0 || fdatasync(keep) < 0)
		return fail(id, r < 0 ? -r : errno, "keeping its torn last line", err);
	if (ftruncate(log, from + (off_t)whole) < 0)
		return fail(id, errno, "taking off its torn last line", err);
	*ret = json_pack("{s:o*, s:I}", "torn", audit_text(to + whole, torn, TORN_TEXT),
			 "torn_bytes", (json_int_t)torn);
	return *ret ? 0 : err_nomem(err, STAGE);
}

static int close_run(const char *id, int dir, int log, audit_kill_fn *kill, void *arg,
		     struct pale_err *err)
{
	struct audit *a = NULL;
	json_t *body = NULL;
	int r;

	if (kill) {
		r = kill(arg, id, err);
		if (r < 0)
			return r;
	}
	r = take_torn(id, dir, log, &body, err);
	if (r < 0)
		return r;
	r = audit_adopt(id, dir, log, &a, err);
	if (r < 0) {
		json_decref(body);
		return r;
	}
	if (audit_ended(a)) {
		/* It died between the last line and the seal, which audit_free() makes. */
		json_decref(body);
		audit_free(a);
		return 0;
	}
	if (!body)
		body = json_object();
	json_object_set_new(body, "recovered_by", json_integer(getpid()));
	r = audit_append(a, STAGE, "box.lost", body, err);
	if (r >= 0)
		r = audit_append(a, STAGE, "box.end",
				 json_pack("{s:s}", "outcome", "supervisor lost"), err);
	if (r >= 0)
		r = audit_sync(a, err);
	audit_free(a);
	return r;
}

/* 1 if the run was closed, 0 if there was nothing to do, or a negative code. */
static int look_at(const struct audit_state *s, const char *id, audit_kill_fn *kill, void *arg,
		   struct pale_err *err)
{
	_cleanup_close_ int dir = -1, log = -1;
	struct stat st;
	int r = audit_state_run(s, id, O_RDWR | O_APPEND, &dir, &log, err);

	if (r == -PALE_E_NOTFOUND) {
		/* Died between registering the run and making its log; or is just about to. */
		if (fstatat(s->active, id, &st, AT_SYMLINK_NOFOLLOW) < 0 || age_of(&st) < 3600)
			return 0;
		unlinkat(s->runs, id, AT_REMOVEDIR);
		unlinkat(s->active, id, 0);
		return 0;
	}
	if (r < 0)
		return r;
	if (audit_locked(log))
		return 0;
	r = audit_lock(log, false);
	if (r < 0)
		return r == -EAGAIN ? 0 : fail(id, -r, "locking its log", err);
	/* Another command may have closed it between our look and our lock. */
	if (fstatat(s->active, id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (fstat(log, &st) < 0)
		return fail(id, errno, "looking at its log", err);
	if (st.st_size == 0 && age_of(&st) < YOUNG_S)
		return 0;
	r = close_run(id, dir, log, kill, arg, err);
	if (r < 0)
		return r;
	return 1;
}

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

int audit_recover(audit_kill_fn *kill, void *arg, struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	int closed = 0, failed = 0, r = audit_state_open(&s, err);

	if (r < 0)
		return r;
	int fd = openat(s.active, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(close_dir) DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		return err_set(err, PALE_E_AUDIT, STAGE, errno, "reading the list of live runs");
	for (struct dirent *e; (e = readdir(d));) {
		if (!ulid_valid(e->d_name))
			continue;
		/* One run that cannot be closed must not keep the others open. */
		r = look_at(&s, e->d_name, kill, arg, failed ? NULL : err);
		if (r < 0 && !failed)
			failed = r;
		else if (r > 0)
			closed++;
	}
	return failed ? failed : closed;
}
