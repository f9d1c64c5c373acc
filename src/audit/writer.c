/* The writer of one run's log.
 *
 * Runs in the supervisor, outside the box, with the caller's privileges. What it is given may hold
 * hostile text (paths, names, code), as JSON strings: the encoder escapes it, so that one event is
 * always one line. A line is one write() to an O_APPEND file that nobody else writes (the lock),
 * and a write that fails half-way is taken back: a reader never sees half a line but after a crash.
 *
 * Order: active/<id> exists before the run does, and goes only after box.end is in the file, so
 * that whatever happens in between is found by audit_recover(). */
#include "audit/audit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "audit/chain.h"
#include "audit/events.h"
#include "audit/state.h"
#include "audit/ulid.h"
#include "audit/verify.h"
#include "audit/writer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/str.h"

#define STAGE	     "audit"
#define SEAL	     "head" /* runs/<id>/head */
#define SEAL_NEW     "head.new"
#define EVENT_MAX    (64u << 10) /* an ordinary line */
#define WHOLE_MAX    (32u << 20) /* box.start: the whole code */
#define CUT_STRING   512u	 /* what a too large event keeps of each string */
#define CUT_CHILDREN 64u	 /* and of each array */

struct audit {
	struct audit_state state;
	char id[AUDIT_ID_SIZE];
	char path[4096];
	int dir, log;
	int mark; /* active/<id>, which becomes the seal; -1 in a continued log */
	off_t size;
	struct chain_head head;
	struct buf line;
	bool synced_dirs, ended, broken, dirty;
	bool flushing;	      /* begun, and its result not asked for */
	struct helper *flush; /* NULL: never begun */
	audit_observer *observer;
	void *observer_arg;
};

static struct audit *writer_new(struct pale_err *err)
{
	struct audit *a = calloc(1, sizeof(*a));

	if (!a) {
		err_nomem(err, STAGE);
		return NULL;
	}
	a->state = AUDIT_STATE_NONE;
	a->dir = a->log = a->mark = -1;
	a->line = BUF_INIT(WHOLE_MAX);
	return a;
}

static void writer_free(struct audit *a)
{
	if (!a)
		return;
	close_fd(&a->log);
	close_fd(&a->dir);
	close_fd(&a->mark);
	audit_state_done(&a->state);
	buf_done(&a->line);
	free(a);
}

static void writer_done(struct audit **a)
{
	writer_free(*a);
}

static int fail(struct audit *a, int sys, const char *what, struct pale_err *err)
{
	err_set(err, PALE_E_AUDIT, STAGE, sys, "%s in %s", what, QUOTED(a->state.path));
	if (sys == ENOSPC || sys == EDQUOT)
		err_add(err, "; remedy: `pale audit prune`, or PALE_STATE_DIR on a larger disk");
	return -PALE_E_AUDIT;
}

static int set_path(struct audit *a, struct pale_err *err)
{
	int n = snprintf(a->path, sizeof(a->path), "%s/runs/%s", a->state.path, a->id);

	return n < (int)sizeof(a->path) ? 0
					: fail(a, ENAMETOOLONG, "naming the run's directory", err);
}

/* The lock, the check that nobody closed the run between its creation and the lock (see recover.c).
 */
static int make_log(struct audit *a, struct pale_err *err)
{
	struct stat st;

	a->dir = openat(a->state.runs, a->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (a->dir < 0)
		return fail(a, errno, "opening the run's directory", err);
	a->log = openat(a->dir, AUDIT_LOG_NAME,
			O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (a->log < 0)
		return fail(a, errno, "making the run's log", err);
	int r = audit_lock(a->log, true);

	if (r < 0)
		return fail(a, -r, "locking the run's log", err);
	if (fstat(a->log, &st) < 0 || st.st_size != 0)
		return fail(a, 0, "another command closed the new run's log", err);
	return 0;
}

int audit_create(struct audit **ret, struct pale_err *err)
{
	_cleanup_(writer_done) struct audit *a = writer_new(err);
	int r;

	if (!a)
		return -PALE_E_NOMEM;
	r = audit_state_open(&a->state, err);
	if (r < 0)
		return r;
	r = ulid_make(a->id);
	if (r < 0)
		return fail(a, -r, "making an id for the run", err);
	r = set_path(a, err);
	if (r < 0)
		return r;
	chain_genesis(a->id, a->head.hash);

	a->mark = openat(a->state.active, a->id,
			 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (a->mark < 0)
		return fail(a, errno, "registering the run", err);
	if (mkdirat(a->state.runs, a->id, 0700) < 0) {
		r = fail(a, errno, "making the run's directory", err);
	} else {
		r = make_log(a, err);
		if (r < 0) {
			if (a->log >= 0)
				unlinkat(a->dir, AUDIT_LOG_NAME, 0);
			unlinkat(a->state.runs, a->id, AT_REMOVEDIR);
		}
	}
	if (r < 0) {
		unlinkat(a->state.active, a->id, 0);
		return r;
	}
	*ret = take_ptr(a);
	return 0;
}

/* The last line of a log that must be whole. */
static int read_last(struct audit *a, struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(AUDIT_LINE_MAX + 2);
	_cleanup_line_ struct chain_line line = {0};
	size_t want = 4096, at;
	struct stat st;

	if (fstat(a->log, &st) < 0)
		return fail(a, errno, "looking at the run's log", err);
	a->size = st.st_size;
	for (;; want *= 4) {
		if (want > (size_t)st.st_size)
			want = (size_t)st.st_size;
		b.len = 0;
		char *to = buf_room(&b, want);

		if (!to)
			return fail(a, 0, "the last line of the log is too long", err);
		if (pread(a->log, to, want, st.st_size - (off_t)want) != (ssize_t)want)
			return fail(a, EIO, "reading the run's log", err);
		b.len = want;
		if (want == 0 || b.data[want - 1] != '\n')
			return fail(a, 0, "the run's log is empty or its last line is not complete",
				    err);
		const char *nl = memrchr(b.data, '\n', want - 1);

		at = nl ? (size_t)(nl - b.data) + 1 : 0;
		if (nl || want == (size_t)st.st_size)
			break;
		if (want > AUDIT_LINE_MAX)
			return fail(a, 0, "the last line of the log is too long", err);
	}
	const char *why = chain_parse(b.data + at, b.len - at - 1, &line);

	if (why || strcmp(line.run, a->id) != 0)
		return fail(a, 0, why ? why : "the last line belongs to another run", err);
	const struct audit_event *e = audit_event_find(line.event);

	a->ended = e && (e->flags & (AUDIT_F_END | AUDIT_F_AFTER_END));
	a->head.seq = line.seq;
	chain_hash(b.data + at, b.len - at - 1, a->head.hash);
	return 0;
}

int audit_adopt(const char *id, int dir, int log, struct audit **ret, struct pale_err *err)
{
	_cleanup_(writer_done) struct audit *a = writer_new(err);
	struct stat st;
	int r;

	if (!a)
		return -PALE_E_NOMEM;
	memcpy(a->id, id, AUDIT_ID_SIZE);
	r = audit_state_open(&a->state, err);
	if (r < 0)
		return r;
	r = set_path(a, err);
	if (r < 0)
		return r;
	a->dir = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	a->log = fcntl(log, F_DUPFD_CLOEXEC, 3);
	if (a->dir < 0 || a->log < 0 || fstat(a->log, &st) < 0)
		return fail(a, errno, "opening the run's log", err);
	if (st.st_size == 0)
		chain_genesis(a->id, a->head.hash);
	else if ((r = read_last(a, err)) < 0)
		return r;
	*ret = take_ptr(a);
	return 0;
}

int audit_reopen(const char *id, struct audit **ret, struct pale_err *err)
{
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	_cleanup_close_ int dir = -1, log = -1;
	struct audit_verdict v;
	struct stat st;
	int r = audit_state_open(&s, err);

	if (r < 0)
		return r;
	r = audit_state_run(&s, id, O_RDWR | O_APPEND, &dir, &log, err);
	if (r < 0)
		return r;
	/* A live run holds its lock as long as it lives; another `pale apply` only for a moment. */
	if (audit_locked(log) && fstatat(s.active, id, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(err, PALE_E_CONFLICT, STAGE, 0, "run %s is still active", id);
	r = audit_lock(log, true);
	if (r < 0)
		return err_set(err, PALE_E_AUDIT, STAGE, -r, "locking the log of run %s", id);
	if (fstatat(s.active, id, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(
			err, PALE_E_CONFLICT, STAGE, 0,
			"the log of run %s has no end: its supervisor was lost; any `pale run` or "
			"`pale audit list` closes it",
			id);
	/* A new line and a new seal must not cover up what happened to the old ones. */
	r = audit_verify(id, NULL, &v, err);
	if (r < 0)
		return r;
	if (v.state == AUDIT_LOG_BROKEN)
		return err_set(err, PALE_E_AUDIT, STAGE, 0, "the log of run %s does not verify: %s",
			       id, v.what);
	if (!v.end_line)
		return err_set(err, PALE_E_AUDIT, STAGE, 0,
			       "the log of run %s has no end: it was altered", id);
	return audit_adopt(id, dir, log, ret, err);
}

const char *audit_id(const struct audit *a)
{
	return a->id;
}

int audit_dir_fd(const struct audit *a)
{
	return a->dir;
}

const char *audit_dir_path(const struct audit *a)
{
	return a->path;
}

bool audit_ended(const struct audit *a)
{
	return a->ended;
}

const char *audit_head(const struct audit *a)
{
	return a->head.hash;
}

void audit_observe(struct audit *a, audit_observer *fn, void *arg)
{
	a->observer = fn;
	a->observer_arg = arg;
}

/* A smaller body that still says most: long strings and arrays cut, deep parts left out. */
static json_t *cut(const json_t *v, unsigned depth)
{
	json_t *out;

	switch (json_typeof(v)) {
	case JSON_STRING:
		return audit_text(json_string_value(v), json_string_length(v), CUT_STRING);
	case JSON_ARRAY:
		out = json_array();
		for (size_t i = 0; out && depth < 4 && i < json_array_size(v) && i < CUT_CHILDREN;
		     i++)
			if (json_array_append_new(out, cut(json_array_get(v, i), depth + 1)) < 0)
				break;
		return out;
	case JSON_OBJECT: {
		const char *key;
		json_t *value;

		out = json_object();
		json_object_foreach((json_t *)(uintptr_t)v, key,
				    value) if (out && depth < 4 && strlen(key) < 128 &&
					       json_object_size(out) < CUT_CHILDREN)
			json_object_set_new(out, key, cut(value, depth + 1));
		return out;
	}
	default: return json_incref((json_t *)(uintptr_t)v);
	}
}

/* The least: numbers and short texts, so that an outcome is never lost to a long list beside it. */
static json_t *bare(const json_t *body)
{
	json_t *out = json_object(), *value;
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)body, key,
			    value) if (out && json_object_size(out) < CUT_CHILDREN &&
				       strlen(key) < 64 && !json_is_object(value) &&
				       !json_is_array(value) && json_string_length(value) <= 256)
		json_object_set(out, key, value);
	return out;
}

static int build(struct audit *a, const struct audit_event *e, const char *time, const char *stage,
		 json_t **body)
{
	int r;

	a->line.max = e->flags & AUDIT_F_WHOLE ? WHOLE_MAX : EVENT_MAX;
	r = chain_build(&a->head, a->id, time, stage, e->name, *body, &a->line);
	for (int i = 0; r == -ENOSPC && !(e->flags & AUDIT_F_WHOLE) && i < 2; i++) {
		json_t *less = i == 0 ? cut(*body, 0) : bare(*body);

		if (!less || json_object_set_new(less, "cut", json_true()) < 0) {
			json_decref(less);
			return -ENOMEM;
		}
		json_decref(*body);
		*body = less;
		r = chain_build(&a->head, a->id, time, stage, e->name, *body, &a->line);
	}
	return r;
}

static void observe(struct audit *a, const struct audit_event *e, const char *time,
		    const char *stage, json_t *body, const char *prev)
{
	json_t *o = json_pack("{s:I, s:s, s:s, s:s, s:s}", "seq", (json_int_t)a->head.seq, "time",
			      time, "run", a->id, "stage", stage, "event", e->name);

	if (o && body)
		json_object_update(o, body);
	if (o && json_object_set_new(o, "prev", json_string(prev)) == 0)
		a->observer(a->observer_arg, o);
	json_decref(o);
}

/* One write for the line; what does not fit is taken back. */
static int write_line(struct audit *a, struct pale_err *err)
{
	ssize_t n;
	int sys;

	do
		n = write(a->log, a->line.data, a->line.len);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)a->line.len) {
		a->size += n;
		return 0;
	}
	sys = n < 0 ? errno : 0;
	if (n > 0) {
		/* The rest tells why: usually that the disk is full. */
		ssize_t m = write(a->log, a->line.data + n, a->line.len - (size_t)n);

		if (m == (ssize_t)a->line.len - n) {
			a->size += n + m;
			return 0;
		}
		sys = m < 0 ? errno : ENOSPC;
	}
	if (ftruncate(a->log, a->size) < 0)
		a->broken = true;
	return fail(a, sys, "writing the audit log", err);
}

static void free_json(json_t **j)
{
	json_decref(*j);
}

/* Filesystems on which fsync of a new file also puts its name, and the new directories above it, on
 * disk (one journal). Elsewhere POSIX promises that only for fsync of the directories, each of
 * which costs another flush of the disk. */
static bool names_follow(int fd)
{
	struct statfs f;

	if (fstatfs(fd, &f) < 0)
		return false;
	return f.f_type == EXT4_SUPER_MAGIC || f.f_type == XFS_SUPER_MAGIC ||
	       f.f_type == BTRFS_SUPER_MAGIC || f.f_type == TMPFS_MAGIC;
}

/* 0 or a negative errno. Nothing but system calls: see base/helper.h. */
static int sync_files(const struct audit *a)
{
	if (fdatasync(a->log) < 0)
		return -errno;
	if (!a->synced_dirs && !names_follow(a->log) &&
	    (fsync(a->dir) < 0 || fsync(a->state.runs) < 0 || fsync(a->state.active) < 0))
		return -errno;
	return 0;
}

static int synced(struct audit *a, int r, struct pale_err *err)
{
	if (r < 0)
		return fail(a, -r, "putting the audit log on disk", err);
	a->synced_dirs = true;
	return 0;
}

int audit_sync(struct audit *a, struct pale_err *err)
{
	return synced(a, sync_files(a), err);
}

/* Waits for its end, after which it is no child of ours any more. */
static void flush_done(struct audit *a)
{
	if (!a->flush)
		return;
	(void)helper_wait(a->flush);
	free(a->flush);
	a->flush = NULL;
}

static int flush_run(void *arg)
{
	return sync_files(arg);
}

int audit_sync_begin(struct audit *a, struct pale_err *err)
{
	struct helper *h = malloc(sizeof(*h));

	if (!h)
		return err_nomem(err, STAGE);
	if (helper_start(h, flush_run, a) < 0) {
		free(h);
		return audit_sync(a, err);
	}
	a->flush = h;
	a->flushing = true;
	return 0;
}

int audit_sync_end(struct audit *a, struct pale_err *err)
{
	if (!a->flushing)
		return 0;
	a->flushing = false;
	/* Its own end is waited for later: this is in the way of the first instruction. */
	return synced(a, helper_finished(a->flush) ? a->flush->result : helper_wait(a->flush), err);
}

int audit_append(struct audit *a, const char *stage, const char *event, json_t *body,
		 struct pale_err *err)
{
	_cleanup_(free_json) json_t *own = body;
	const struct audit_event *e = audit_event_find(event);
	char time[CLOCK_TEXT], prev[AUDIT_HASH_SIZE];
	int r;

	if (!e)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "no event is called %s", QUOTED(event));
	if (!own)
		return err_nomem(err, STAGE);
	if (a->broken)
		return fail(a, EIO, "the audit log could not be written before", err);
	r = audit_sync_end(a, err);
	flush_done(a);
	if (r < 0)
		return r;
	if (a->ended && !(e->flags & AUDIT_F_AFTER_END))
		return err_set(err, PALE_E_USAGE, STAGE, 0, "%s cannot follow the end of a run",
			       event);
	clock_wall_text(time);
	r = build(a, e, time, stage, &own);
	if (r == -ENOMEM)
		return err_nomem(err, STAGE);
	if (r == -ENOSPC)
		return err_set(
			err, PALE_E_AUDIT, STAGE, 0,
			"%s is larger than a line of the audit log can be (%u MiB): code and "
			"arguments are recorded whole; pass large data as a file",
			event, WHOLE_MAX >> 20);
	if (r < 0)
		return err_set(err, PALE_E_USAGE, STAGE, -r, "the body of %s", event);
	r = write_line(a, err);
	if (r < 0)
		return r;
	memcpy(prev, a->head.hash, sizeof(prev));
	a->head.seq++;
	a->dirty = true;
	chain_hash(a->line.data, a->line.len - 1, a->head.hash);
	if (e->flags & AUDIT_F_END)
		a->ended = true;
	if (a->observer)
		observe(a, e, time, stage, own, prev);
	if (a->line.cap > 4 * EVENT_MAX)
		buf_done(&a->line);
	return 0;
}

/* The seal: how many lines there are and the hash of the last, which no other line holds. The run's
 * entry in active/ becomes it by renaming, so that a run is either active or sealed. If this fails,
 * the entry stays and audit_recover() does it again. */
static void seal(struct audit *a)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%" PRIu64 " %s\n", a->head.seq, a->head.hash);
	bool own = a->mark < 0;

	if (own)
		a->mark = openat(a->dir, SEAL_NEW,
				 O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (a->mark < 0 || fd_write_all(a->mark, text, (size_t)n) < 0)
		return;
	if (!own)
		renameat(a->state.active, a->id, a->dir, SEAL);
	else if (renameat(a->dir, SEAL_NEW, a->dir, SEAL) == 0)
		unlinkat(a->state.active, a->id, 0);
}

void audit_free(struct audit *a)
{
	if (!a)
		return;
	flush_done(a);
	/* Before the lock goes, or another command could find the run active and unlocked. */
	if (a->ended && (a->dirty || faccessat(a->state.active, a->id, F_OK, 0) == 0))
		seal(a);
	writer_free(a);
}
