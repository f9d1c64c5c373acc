/* The files of a session's executions: see session_files.h. In the supervisor. Hostile: what the
 * keeper answers, which reads what the box made: its numbers were checked, and each record is. */
#include "supervise/session_files.h"

#include <string.h>
#include <sys/statfs.h>

#include "files/keeper.h"
#include "plan/kernel.h"
#include "supervise/door_files.h"
#include "supervise/run.h"

#define KEEP_BYTES  (64u << 20) /* of contents, at most */
#define KEEP_PART   4		/* of the box's memory as much, at most */
#define KEEP_ANYWAY (8u << 20)	/* so little in the box is kept without a look at its memory */

/* --- is there anything? ------------------------------------------------------------------------
 */

void session_files_start(struct run *run)
{
	struct session_files *f = &run->files;
	struct statfs st;

	/* What the caller put there could be changed without a new file, and a place of its own
	 * size is another file system. */
	f->countable =
		run->box.data_fd >= 0 && !run->plan->nfiles && fstatfs(run->box.data_fd, &st) == 0;
	for (size_t i = 0; i < run->plan->nsteps; i++)
		if (run->plan->steps[i].type == STEP_TMPFS)
			f->countable = false;
	f->free0 = f->countable ? st.f_ffree : 0;
}

/* Every name takes an inode: as many as at the start means that there is nothing. */
static bool nothing_there(const struct run *run)
{
	struct statfs st;

	return run->files.countable && fstatfs(run->box.data_fd, &st) == 0 &&
	       st.f_ffree >= run->files.free0;
}

/* How much the keeper may keep: it is not in the box's group, but what a box with little memory
 * has, and leaves, is a measure for it, too. Never 0, which means that nothing is to be kept. */
static uint64_t most_of(const struct run *run)
{
	uint64_t part = run->plan->limits.memory_bytes / KEEP_PART;

	return part && part < KEEP_BYTES ? part : KEEP_BYTES;
}

static uint64_t budget_of(struct run *run)
{
	const uint64_t most = most_of(run);
	uint64_t left;
	struct statfs st;

	if (run->box.data_fd < 0 || fstatfs(run->box.data_fd, &st) < 0 ||
	    (st.f_blocks - st.f_bfree) * (uint64_t)st.f_bsize <= KEEP_ANYWAY)
		return most;
	left = limits_memory_left(run) / 2 + 1;
	return left < most ? left : most;
}

/* --- reasons -----------------------------------------------------------------------------------
 */

static void say_why(uint32_t error, char *ret)
{
	char text[64];

	switch (error) {
	case E2BIG:
		snprintf(ret, SESSION_WHY,
			 "there are more than %d files in the box's writable places",
			 KEEPER_ENTRIES);
		break;
	case EFBIG:
		snprintf(ret, SESSION_WHY,
			 "the files in the box's writable places are larger than what is kept (64 "
			 "MiB, a quarter of its memory, half of what is left; of holes 1 MiB)");
		break;
	case ENOSPC:
		snprintf(ret, SESSION_WHY,
			 "what is to come back takes more memory than the box has left");
		break;
	case EACCES:
	case EPERM:
		snprintf(ret, SESSION_WHY,
			 "something in the box's writable places cannot be read: its mode forbids "
			 "it");
		break;
	case ENAMETOOLONG: snprintf(ret, SESSION_WHY, "the box's directories are too deep"); break;
	case ESTALE:
	case ENOENT: snprintf(ret, SESSION_WHY, "files were changed while they were kept"); break;
	case ECANCELED: snprintf(ret, SESSION_WHY, "it ran without rollback"); break;
	case ENODATA:
		snprintf(ret, SESSION_WHY, "what was there before is not known any more");
		break;
	default:
		snprintf(ret, SESSION_WHY, "looking at the box's files failed: %s",
			 strerrordesc_np((int)error)
				 ? strerrordesc_np((int)error)
				 : (snprintf(text, sizeof(text), "error %u", error), text));
	}
}

/* --- asking ------------------------------------------------------------------------------------
 */

static int ask(struct run *run, enum inside_op op, uint32_t flags, struct pale_err *err)
{
	struct session_files *f = &run->files;
	struct inside_request q = {.op = op, .flags = flags, .offset = f->budget};
	int r;

	/* Nobody waits for another answer any more. */
	f->waiting = 0;
	if (op == INSIDE_BACK)
		q.room = run->plan->limits.memory_bytes ? limits_memory_left(run) : UINT64_MAX;
	r = !run->inside || run->box.reaped
		    ? err_set(err, PALE_E_CONFLICT, "files", 0, "the box has ended")
		    : inside_keep(run->inside, &q, err);

	if (r == 0)
		f->waiting = op;
	return r;
}

int session_files_begin(struct run *run, bool rollback, bool *ret_kept, char *ret_why)
{
	struct session_files *f = &run->files;
	struct pale_err err;
	bool holds = kernel_holds(run->plan->kernel);

	*ret_kept = false;
	/* Files go back together with variables, or not at all. */
	if (!holds)
		snprintf(ret_why, SESSION_WHY, "this kernel cannot go back");
	rollback &= holds;
	f->waiting = 0;
	f->nothing = !run->inside || (!inside_keeps(run->inside) && nothing_there(run));
	f->budget = rollback ? f->nothing ? most_of(run) : budget_of(run) : 0;
	f->why[0] = '\0';
	f->since = false;
	if (!rollback)
		say_why(ECANCELED, f->why);
	if (f->nothing) {
		*ret_kept = rollback;
		return 0;
	}
	f->since = !rollback && f->looked && inside_keeps(run->inside);
	f->looked = false;
	if (f->since)
		return 0;
	if (ask(run, INSIDE_KEEP, 0, &err) == 0)
		return SESSION_LATER;
	snprintf(f->why, sizeof(f->why), "%.150s", err.message);
	snprintf(ret_why, SESSION_WHY, "%s", f->why);
	return 0;
}

static void put_nothing(const struct run *run, bool back, json_t *o)
{
	json_object_set_new(o, "files", json_array());
	if (back && !run->files.why[0]) {
		json_object_set_new(o, "files_back", json_integer(0));
		json_object_set_new(o, "files_failed", json_integer(0));
	}
}

static void put_failure(bool back, const char *why, json_t *o)
{
	json_object_set_new(o, "files", json_null());
	if (back)
		json_object_set_new(o, "files_back", json_null());
	json_object_set_new(o, "files_why", json_string(why));
}

int session_files_settle(struct run *run, bool back, json_t *result)
{
	struct session_files *f = &run->files;
	struct pale_err err;

	f->undo = false;
	f->waiting = 0;
	if (run->box.reaped || !run->inside) {
		put_failure(false, "the box has ended", result);
		return 0;
	}
	if (f->nothing && nothing_there(run)) {
		put_nothing(run, back, result);
		return 0;
	}
	if (ask(run, back ? INSIDE_BACK : INSIDE_LOOK,
		f->nothing ? INSIDE_NOTHING
		: f->since ? INSIDE_SINCE
			   : 0,
		&err) == 0)
		return SESSION_LATER;
	put_failure(back, err.message, result);
	return 0;
}

int session_files_back(struct run *run, json_t **ret)
{
	struct session_files *f = &run->files;
	struct pale_err err;

	f->undo = true;
	*ret = json_object();
	if (f->nothing && nothing_there(run)) {
		put_nothing(run, true, *ret);
		return 0;
	}
	if (!f->why[0] && ask(run, INSIDE_BACK, f->nothing ? INSIDE_NOTHING : 0, &err) == 0) {
		json_decref(*ret);
		*ret = NULL;
		return SESSION_LATER;
	}
	put_failure(true, f->why[0] ? f->why : err.message, *ret);
	return 0;
}

/* --- answers -----------------------------------------------------------------------------------
 */

static json_t *changes_json(const struct inside_answer *a, const char *data)
{
	static const char *const kinds[] = {[INSIDE_ADDED] = "added",
					    [INSIDE_CHANGED] = "changed",
					    [INSIDE_DELETED] = "deleted"};
	json_t *list = json_array();
	size_t at = 0;

	for (uint32_t i = 0; i < a->count; i++) {
		struct inside_change c;
		json_t *o;

		if (a->length - at < sizeof(c))
			break;
		memcpy(&c, data + at, sizeof(c));
		at += sizeof(c);
		if (c.kind < INSIDE_ADDED || c.kind > INSIDE_DELETED || c.path_len > a->length - at)
			break;
		o = json_object();
		door_files_put(o, "path", data + at, c.path_len);
		at += c.path_len;
		json_object_set_new(o, "change", json_string(kinds[c.kind]));
		json_object_set_new(o, "type", json_string(door_files_type(c.mode)));
		json_object_set_new(
			o, "size",
			json_integer((json_int_t)(c.size > INT64_MAX ? INT64_MAX : c.size)));
		json_object_set_new(o, "mode", json_integer((json_int_t)(c.mode & 07777)));
		if (c.error)
			json_object_set_new(o, "error",
					    json_string(strerrordesc_np(c.error)
								? strerrordesc_np(c.error)
								: "unknown"));
		json_array_append_new(list, o);
	}
	return list;
}

json_t *session_files_result(const struct inside_request *q, const struct inside_answer *a,
			     const char *data, const struct pale_err *err)
{
	bool back = q->op == INSIDE_BACK;
	json_t *o = json_object(), *list;
	char why[SESSION_WHY] = "";

	if (err)
		snprintf(why, sizeof(why), "%.150s", err->message);
	else if (a->error)
		say_why((uint32_t)a->error, why);
	if (why[0]) {
		put_failure(back, why, o);
		return o;
	}
	list = changes_json(a, data);
	json_object_set_new(o, "files", list);
	if (a->total > json_array_size(list))
		json_object_set_new(o, "files_more",
				    json_integer((json_int_t)(a->total - json_array_size(list))));
	if (back && a->why) {
		say_why(a->why, why);
		json_object_set_new(o, "files_back", json_null());
		json_object_set_new(o, "files_why", json_string(why));
	} else if (back) {
		json_object_set_new(o, "files_back", json_integer((json_int_t)a->back));
		json_object_set_new(o, "files_failed", json_integer((json_int_t)a->failed));
	}
	return o;
}

void session_files_kept(void *arg, const struct inside_request *q, const struct inside_answer *a,
			const char *data, const struct pale_err *err)
{
	struct run *run = arg;
	struct session_files *f = &run->files;

	/* Its execution has ended since, with the box. */
	if (f->waiting != q->op)
		return;
	f->waiting = 0;
	if (q->op != INSIDE_KEEP) {
		json_t *o = session_files_result(q, a, data, err);

		f->nothing = f->since = false;
		f->looked = q->op == INSIDE_LOOK && !err && !a->error;
		if (f->undo)
			session_put_back(run->session, o);
		else
			session_settled(run->session, o);
		return;
	}
	if (err)
		snprintf(f->why, sizeof(f->why), "%.150s", err->message);
	else if (a->error || a->why)
		say_why(a->error ? (uint32_t)a->error : a->why, f->why);
	session_begun(run->session, !f->why[0],
		      kernel_holds(run->plan->kernel) ? f->why : "this kernel cannot go back");
}
