/* The commands for the files of a running box: see door_files.h. In the supervisor; the arguments
 * come from the box's owner, or whoever got that far, and are only passed on: the worker inside
 * (src/files/inside_worker.c) is what a path is resolved by. Its answers are hostile: lengths are
 * checked, names and contents are bytes of any kind, and go out as base64 where they are no UTF-8.
 */
#include "supervise/door_files.h"

#include <string.h>
#include <sys/stat.h>

#include "audit/audit.h"
#include "base/base64.h"
#include "base/str.h"

#define STAGE	   "files"
#define LIST_USUAL 1000
#define MODE_FILE  0644u
#define MODE_DIR   0755u
#define OFFSET_MAX INT64_MAX

static const char *const op_names[] = {
	[INSIDE_STAT] = "stat",	  [INSIDE_LIST] = "list",   [INSIDE_READ] = "read",
	[INSIDE_WRITE] = "write", [INSIDE_MKDIR] = "mkdir", [INSIDE_REMOVE] = "remove",
	[INSIDE_LINK] = "link",
};

/* --- arguments ---------------------------------------------------------------------------------
 */

static int finish(struct door_call *call, int r, struct pale_err *err)
{
	if (r < 0)
		call->code = control_code_of(err);
	return r;
}

static uint64_t number(const struct door_call *call, const char *key, uint64_t max,
		       uint64_t fallback, int *r, struct pale_err *err)
{
	const json_t *o = json_object_get(call->arguments, key);

	if (!o || *r < 0)
		return fallback;
	if (!json_is_integer(o) || json_integer_value(o) < 0 ||
	    (uint64_t)json_integer_value(o) > max) {
		*r = err_set(err, PALE_E_USAGE, STAGE, 0, "`%s`: a whole number from 0 to %llu",
			     key, (unsigned long long)max);
		return fallback;
	}
	return (uint64_t)json_integer_value(o);
}

static bool flag(const struct door_call *call, const char *key, bool fallback, int *r,
		 struct pale_err *err)
{
	const json_t *o = json_object_get(call->arguments, key);

	if (!o || *r < 0)
		return fallback;
	if (!json_is_boolean(o))
		*r = err_set(err, PALE_E_USAGE, STAGE, 0, "`%s`: true or false", key);
	return json_is_true(o);
}

/* Bytes: KEY as text, or KEY_base64. *ret is for the caller to free; NULL: neither is given. */
static int bytes(const struct door_call *call, const char *key, char **ret, size_t *ret_len,
		 struct pale_err *err)
{
	const json_t *text = json_object_get(call->arguments, key), *coded;
	char other[32];
	int r;

	*ret = NULL;
	*ret_len = 0;
	snprintf(other, sizeof(other), "%s_base64", key);
	coded = json_object_get(call->arguments, other);
	if ((text && !json_is_string(text)) || (coded && !json_is_string(coded)) || (text && coded))
		return err_set(err, PALE_E_USAGE, STAGE, 0, "`%s` or `%s`: a text", key, other);
	if (text) {
		*ret_len = json_string_length(text);
		*ret = strdup(json_string_value(text));
		return *ret ? 0 : err_nomem(err, STAGE);
	}
	if (!coded)
		return 0;
	r = base64_decode(json_string_value(coded), json_string_length(coded), ret, ret_len);
	if (r == -EINVAL)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "`%s` is no base64", other);
	return r < 0 ? err_nomem(err, STAGE) : 0;
}

static int take_path(const struct door_call *call, struct inside_request *q, struct pale_err *err)
{
	_cleanup_free_ char *path = NULL;
	size_t len;
	int n, r = bytes(call, "path", &path, &len, err);

	if (r < 0)
		return r;
	if (!path)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "`path` is missing: a text");
	if (!len || memchr(path, '\0', len))
		return err_set(err, PALE_E_USAGE, STAGE, 0,
			       "`path`: at least one byte, and none of them zero");
	n = snprintf(q->path, sizeof(q->path), "%s%s%s",
		     *path == '/' ? "" : call->config->files.plan->command.cwd,
		     *path == '/' ? "" : "/", path);
	if (n < 0 || (size_t)n >= sizeof(q->path))
		return err_set(err, PALE_E_USAGE, STAGE, ENAMETOOLONG, "`path`");
	return 0;
}

static int begin(const struct door_call *call, enum inside_op op, const char *const *known,
		 struct inside_request *q, struct pale_err *err)
{
	int r = control_known(call->arguments, known, err);

	/* Who looks at a session's files uses it. */
	if (call->config->session)
		session_touch(call->config->session);
	*q = (struct inside_request){.op = op};
	return r < 0 ? r : take_path(call, q, err);
}

static int ask(struct door_call *call, const struct inside_request *q, const void *data,
	       struct pale_err *err)
{
	int r = inside_ask(call->config->files.inside, q, data, call->client, err);

	return r < 0 ? finish(call, r, err) : DOOR_LATER;
}

/* What changes something is put on record before. */
static int ask_change(struct door_call *call, const struct inside_request *q, const void *data,
		      struct pale_err *err)
{
	const struct door_files *f = &call->config->files;
	int r;

	if (q->length && !f->room(f->arg, q->length))
		return finish(call,
			      err_set(err, PALE_E_SYSTEM, STAGE, ENOMEM,
				      "cannot write %s: the box's memory, of which its files are "
				      "part",
				      QUOTED(q->path)),
			      err);
	r = f->log(f->arg,
		   json_pack("{s:s, s:o, s:I, s:I, s:I, s:o}", "op", op_names[q->op], "path",
			     audit_text(q->path, strlen(q->path), INSIDE_PATH_MAX), "bytes",
			     (json_int_t)q->length, "uid", (json_int_t)call->who.uid, "pid",
			     (json_int_t)call->who.pid, "program",
			     audit_text(call->who.program, strlen(call->who.program), 16)),
		   err);
	return r < 0 ? finish(call, r, err) : ask(call, q, data, err);
}

/* --- commands ----------------------------------------------------------------------------------
 */

int door_files_stat(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"path", "path_base64", "follow", NULL};
	struct inside_request q;
	int r;

	(void)ret;
	if (inside_busy(call->config->files.inside, INSIDE_STAT))
		return DOOR_AGAIN;
	r = begin(call, INSIDE_STAT, known, &q, err);
	q.flags = flag(call, "follow", false, &r, err) ? INSIDE_FOLLOW : 0;
	return r < 0 ? finish(call, r, err) : ask(call, &q, NULL, err);
}

int door_files_list(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"path",	    "path_base64", "after",
					    "after_base64", "limit",	   NULL};
	_cleanup_free_ char *after = NULL;
	struct inside_request q;
	size_t len = 0;
	int r;

	(void)ret;
	if (inside_busy(call->config->files.inside, INSIDE_LIST))
		return DOOR_AGAIN;
	r = begin(call, INSIDE_LIST, known, &q, err);
	if (r == 0)
		r = bytes(call, "after", &after, &len, err);
	if (r == 0 && (len > INSIDE_NAME_MAX || (after && memchr(after, '\0', len))))
		r = err_set(err, PALE_E_USAGE, STAGE, 0, "`after`: the name of an entry");
	if (r == 0 && after)
		memcpy(q.after, after, len);
	q.length = (uint32_t)number(call, "limit", INSIDE_LIST_MAX, LIST_USUAL, &r, err);
	if (r == 0 && !q.length)
		r = err_set(err, PALE_E_USAGE, STAGE, 0, "`limit`: at least 1");
	return r < 0 ? finish(call, r, err) : ask(call, &q, NULL, err);
}

int door_files_read(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"path", "path_base64", "offset", "length", NULL};
	struct inside_request q;
	int r;

	(void)ret;
	if (inside_busy(call->config->files.inside, INSIDE_READ))
		return DOOR_AGAIN;
	r = begin(call, INSIDE_READ, known, &q, err);
	q.offset = number(call, "offset", OFFSET_MAX, 0, &r, err);
	q.length = (uint32_t)number(call, "length", INSIDE_DATA_MAX, INSIDE_DATA_MAX, &r, err);
	return r < 0 ? finish(call, r, err) : ask(call, &q, NULL, err);
}

static int write_flags(struct door_call *call, struct inside_request *q, struct pale_err *err)
{
	bool at_offset = json_object_get(call->arguments, "offset");
	int r = 0;

	if (flag(call, "append", false, &r, err))
		q->flags |= INSIDE_APPEND;
	if (r == 0 && q->flags & INSIDE_APPEND && at_offset)
		r = err_set(err, PALE_E_USAGE, STAGE, 0, "`append` or `offset`, not both");
	if (flag(call, "truncate", !at_offset && !(q->flags & INSIDE_APPEND), &r, err))
		q->flags |= INSIDE_TRUNCATE;
	if (flag(call, "create", true, &r, err))
		q->flags |= INSIDE_CREATE;
	if (json_object_get(call->arguments, "mode"))
		q->flags |= INSIDE_CHMOD;
	q->offset = number(call, "offset", OFFSET_MAX - INSIDE_DATA_MAX, 0, &r, err);
	q->mode = (uint32_t)number(call, "mode", 0777, MODE_FILE, &r, err);
	return r;
}

int door_files_write(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"path",   "path_base64", "data",   "text", "offset",
					    "append", "truncate",    "create", "mode", NULL};
	const json_t *text = json_object_get(call->arguments, "text"),
		     *coded = json_object_get(call->arguments, "data");
	_cleanup_free_ char *decoded = NULL;
	const char *data = NULL;
	struct inside_request q;
	size_t len = 0;
	int r;

	(void)ret;
	if (inside_busy(call->config->files.inside, INSIDE_WRITE))
		return DOOR_AGAIN;
	r = begin(call, INSIDE_WRITE, known, &q, err);
	if (r == 0)
		r = write_flags(call, &q, err);
	if (r == 0 && (!text == !coded || (text && !json_is_string(text)) ||
		       (coded && !json_is_string(coded))))
		r = err_set(err, PALE_E_USAGE, STAGE, 0, "`data` (base64) or `text`: a text");
	if (r == 0 && text) {
		data = json_string_value(text);
		len = json_string_length(text);
	} else if (r == 0) {
		int e = base64_decode(json_string_value(coded), json_string_length(coded), &decoded,
				      &len);

		data = decoded;
		if (e < 0)
			r = e == -ENOMEM
				    ? err_nomem(err, STAGE)
				    : err_set(err, PALE_E_USAGE, STAGE, 0, "`data` is no base64");
	}
	if (r == 0 && len > INSIDE_DATA_MAX)
		r = err_set(err, PALE_E_USAGE, STAGE, 0, "at most %u MiB at a time",
			    INSIDE_DATA_MAX >> 20);
	if (r < 0)
		return finish(call, r, err);
	q.length = (uint32_t)len;
	return ask_change(call, &q, data, err);
}

int door_files_mkdir(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"path", "path_base64", "mode", "parents", NULL};
	struct inside_request q;
	int r;

	(void)ret;
	if (inside_busy(call->config->files.inside, INSIDE_MKDIR))
		return DOOR_AGAIN;
	r = begin(call, INSIDE_MKDIR, known, &q, err);
	q.mode = (uint32_t)number(call, "mode", 0777, MODE_DIR, &r, err);
	q.flags = flag(call, "parents", false, &r, err) ? INSIDE_PARENTS : 0;
	return r < 0 ? finish(call, r, err) : ask_change(call, &q, NULL, err);
}

int door_files_remove(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"path", "path_base64", "recursive", NULL};
	struct inside_request q;
	int r;

	(void)ret;
	if (inside_busy(call->config->files.inside, INSIDE_REMOVE))
		return DOOR_AGAIN;
	r = begin(call, INSIDE_REMOVE, known, &q, err);
	q.flags = flag(call, "recursive", false, &r, err) ? INSIDE_RECURSIVE : 0;
	return r < 0 ? finish(call, r, err) : ask_change(call, &q, NULL, err);
}

int door_files_link(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"path",	     "path_base64", "target",
					    "target_base64", "replace",	    NULL};
	_cleanup_free_ char *target = NULL;
	struct inside_request q;
	size_t len = 0;
	int r;

	(void)ret;
	if (inside_busy(call->config->files.inside, INSIDE_LINK))
		return DOOR_AGAIN;
	r = begin(call, INSIDE_LINK, known, &q, err);
	q.flags = flag(call, "replace", false, &r, err) ? INSIDE_REPLACE : 0;
	if (r == 0)
		r = bytes(call, "target", &target, &len, err);
	if (r == 0 && (!len || len >= INSIDE_PATH_MAX || memchr(target, '\0', len)))
		r = err_set(err, PALE_E_USAGE, STAGE, 0,
			    "`target`: a text of 1 to %d bytes, none of them zero",
			    INSIDE_PATH_MAX - 1);
	q.length = (uint32_t)len;
	return r < 0 ? finish(call, r, err) : ask_change(call, &q, target, err);
}

/* --- answers -----------------------------------------------------------------------------------
 */

int door_files_put(json_t *o, const char *key, const char *data, size_t len)
{
	_cleanup_free_ char *coded = NULL;
	char other[32];

	if (str_utf8_prefix(data, len) == len && !memchr(data, '\0', len))
		return json_object_set_new(o, key, json_stringn_nocheck(data, len));
	coded = base64_encode(data, len);
	snprintf(other, sizeof(other), "%s_base64", key);
	return json_object_set_new(o, other, coded ? json_string(coded) : NULL);
}

const char *door_files_type(uint32_t mode)
{
	return S_ISREG(mode)	? "file"
	       : S_ISDIR(mode)	? "directory"
	       : S_ISLNK(mode)	? "link"
	       : S_ISFIFO(mode) ? "fifo"
	       : S_ISSOCK(mode) ? "socket"
				: "device";
}

/* As the box's /etc/passwd and group have them. */
static const char *owner(const struct plan *plan, uint32_t id, unsigned ours)
{
	return id == ours ? plan->user : id == 0 ? "root" : id == 65534 ? "nobody" : NULL;
}

static json_t *stat_json(const struct plan *plan, const struct inside_stat *st)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s?, s:s?, s:I}", "type",
			 door_files_type(st->mode), "size",
			 (json_int_t)(st->size > INT64_MAX ? INT64_MAX : st->size), "mode",
			 (json_int_t)(st->mode & 07777), "mtime_ns", (json_int_t)st->mtime_ns,
			 "uid", (json_int_t)st->uid, "gid", (json_int_t)st->gid, "user",
			 owner(plan, st->uid, plan->uid), "group", owner(plan, st->gid, plan->gid),
			 "links", (json_int_t)st->links);
}

static json_t *list_json(const struct plan *plan, const struct inside_answer *a, const char *data,
			 struct pale_err *err)
{
	json_t *list = json_array();
	const char *at = data, *end = data + a->length;

	for (uint32_t i = 0; list && i < a->count; i++) {
		struct inside_entry e;
		json_t *o;

		if ((size_t)(end - at) < sizeof(e))
			goto nonsense;
		memcpy(&e, at, sizeof(e));
		at += sizeof(e);
		if (!e.name_len || e.name_len > INSIDE_NAME_MAX ||
		    (size_t)(end - at) < (size_t)e.name_len + e.target_len)
			goto nonsense;
		o = stat_json(plan, &e.st);
		if (!o || door_files_put(o, "name", at, e.name_len) < 0 ||
		    (e.target_len &&
		     door_files_put(o, "target", at + e.name_len, e.target_len) < 0) ||
		    json_array_append(list, o) < 0) {
			json_decref(o);
			json_decref(list);
			err_nomem(err, STAGE);
			return NULL;
		}
		json_decref(o);
		at += e.name_len + e.target_len;
	}
	if (!list)
		err_nomem(err, STAGE);
	return list;
nonsense:
	json_decref(list);
	err_set(err, PALE_E_SYSTEM, STAGE, 0,
		"what reads the box's files lists what makes no sense");
	return NULL;
}

static enum pale_code code_of(int error)
{
	switch (error) {
	case ENOENT: return PALE_E_NOTFOUND;
	case EACCES:
	case EPERM:
	case EROFS: return PALE_E_HOST;
	case EINVAL:
	case ENAMETOOLONG: return PALE_E_USAGE;
	case EEXIST:
	case ENOTEMPTY:
	case EISDIR:
	case ENOTDIR:
	case ELOOP:
	case EBUSY:
	case ENXIO:
	case EAGAIN: return PALE_E_CONFLICT;
	default: return PALE_E_SYSTEM;
	}
}

static void refused(const struct inside_request *q, const struct inside_answer *a,
		    struct pale_err *err)
{
	if (a->error == ENXIO && a->st.mode)
		err_set(err, PALE_E_CONFLICT, STAGE, 0,
			"cannot %s %s: it is a %s, not a regular file", op_names[q->op],
			QUOTED(q->path), door_files_type(a->st.mode));
	else
		err_set(err, code_of(a->error), STAGE, a->error, "cannot %s %s", op_names[q->op],
			QUOTED(q->path));
	if (q->op == INSIDE_WRITE && a->length)
		err_add(err, " (%u of %u bytes were written)", a->length, q->length);
	if (q->op == INSIDE_REMOVE && a->count)
		err_add(err, " (%u others were removed)", a->count);
}

json_t *door_files_result(const struct plan *plan, const struct inside_request *q,
			  const struct inside_answer *a, const char *data, struct pale_err *err)
{
	_cleanup_free_ char *coded = NULL;
	json_t *o, *list;
	int r;

	if (a->error) {
		refused(q, a, err);
		return NULL;
	}
	o = q->op == INSIDE_REMOVE ? json_object() : stat_json(plan, &a->st);
	r = o ? 0 : -1;

	switch ((enum inside_op)q->op) {
	case INSIDE_STAT:
		if (r == 0 && S_ISLNK(a->st.mode))
			r = door_files_put(o, "target", data, a->length);
		break;
	case INSIDE_LIST:
		list = list_json(plan, a, data, err);
		if (!list) {
			json_decref(o);
			return NULL;
		}
		r |= json_object_set_new(o, "entries", list);
		r |= json_object_set_new(o, "more", json_boolean(a->more));
		break;
	case INSIDE_READ:
		coded = base64_encode(data, a->length);
		r |= json_object_set_new(o, "data", coded ? json_string_nocheck(coded) : NULL);
		r |= json_object_set_new(o, "more", json_boolean(a->more));
		break;
	case INSIDE_WRITE:
		r |= json_object_set_new(o, "written", json_integer(a->length));
		r |= json_object_set_new(o, "created", json_boolean(a->more));
		break;
	case INSIDE_MKDIR: r |= json_object_set_new(o, "created", json_boolean(a->more)); break;
	case INSIDE_LINK: break;
	case INSIDE_REMOVE:
		r |= json_object_set_new(o, "removed", json_integer(a->count));
		r |= json_object_set_new(o, "more", json_boolean(a->more));
		break;
	/* The keeper's, which nobody asks for at the door. */
	case INSIDE_KEEP:
	case INSIDE_LOOK:
	case INSIDE_BACK: r = -1; break;
	}
	if (r == 0)
		return o;
	json_decref(o);
	err_nomem(err, STAGE);
	return NULL;
}

void door_files_done(void *client, const struct inside_request *q, const struct inside_answer *a,
		     const char *data, const struct pale_err *err)
{
	const struct plan *plan = door_config_of(client)->files.plan;
	struct pale_err mine = {0};
	json_t *result = NULL;

	if (err)
		mine = *err;
	else
		result = door_files_result(plan, q, a, data, &mine);
	door_answer(client, result, &mine);
}
