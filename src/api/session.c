/* Sessions for the library's callers: see pale.h. In the caller's process with its privileges;
 * speaks to the supervisor of a box of the same user. */
#include "api.h"

#include <fcntl.h>
#include <string.h>

#include "audit/state.h"
#include "base/fd.h"
#include "base/str.h"
#include "pool/pool.h"
#include "supervise/runtime.h"
#include "supervise/session_name.h"

#define STAGE	"session"
#define SLACK_S 30 /* for an answer, beyond what it was asked to wait */
#define LOOK_S	5  /* for a session that is only looked at: one that hangs hides no other */
#define WAIT_MS 600000

struct pale_session {
	int fd;
	bool warm;
	char id[PALE_ID_SIZE];
};

/* Why it never was ready: the end of what the kernel printed. */
static int never_ready(struct pale_box *box, struct pale_err *err)
{
	struct pale_result *result = NULL;
	const char *text;
	size_t len;
	int r = pale_box_wait(box, &result, err);

	if (r < 0)
		return r;
	text = pale_result_output(result, PALE_STDERR, &len);
	while (len && strchr("\n ", text[len - 1]))
		len--;
	if (len > 200) {
		text += len - 200;
		len = 200;
	}
	err_set(err, PALE_E_SYSTEM, STAGE, 0, "the kernel ended before it was ready (%s)",
		pale_result_summary(result));
	if (len) {
		char said[300];

		err_add(err, ": %s", str_escape_into(said, sizeof(said), text, len));
	}
	pale_result_free(result);
	return -(int)err->code;
}

/* Starts one, whose supervisor is ours for as long as it takes. */
static int start_cold(const struct pale_policy *policy, const struct pale_session_options *o,
		      char ret[static PALE_ID_SIZE], struct pale_err *err)
{
	struct pale_command command = {.size = sizeof(command)};
	struct pale_run_options run = {.size = sizeof(run),
				       .use_fds = true,
				       .in = -1,
				       .out = -1,
				       .err = -1,
				       .keep_output = true,
				       .ordered = true};
	struct pale_box *box;
	int r;

	command.cwd = o->cwd;
	command.env = o->env;
	run.base_policy = o->base_policy;
	r = api_box_start(policy, &command, &run, true, 0, o->name, &box, err);
	if (r < 0)
		return r;
	r = api_box_ready(box, err);
	if (r == 1)
		memcpy(ret, pale_box_id(box), PALE_ID_SIZE);
	else if (r == 0)
		r = never_ready(box, err);
	pale_box_free(box);
	return r < 0 ? r : 0;
}

/* From a pool of this policy: a connection. -PALE_E_NOTFOUND: there is none. */
static int claim(const struct pale_policy *policy, const struct pale_session_options *o,
		 char ret[static PALE_ID_SIZE], struct pale_err *err)
{
	_cleanup_close_ int fd = -1;
	char key[POOL_KEY_SIZE];
	json_t *info = NULL, *arguments;
	const char *id;
	int r = pool_key(policy->model, o->env ? o->env : environ, key, err);

	if (r < 0)
		return r;
	fd = pool_connect(key, err);
	if (fd < 0)
		return fd;
	arguments = o->name ? json_pack("{s:s}", "name", o->name) : json_object();
	r = api_door_ask(fd, "of the pool", "pool.claim", arguments, SLACK_S, NULL, &info, err);
	id = json_string_value(json_object_get(info, "id"));
	if (r == 0 && (!id || strlen(id) != PALE_ID_SIZE - 1))
		r = err_set(err, PALE_E_SYSTEM, STAGE, 0, "the pool gives a box without an id");
	if (r == 0)
		memcpy(ret, id, PALE_ID_SIZE);
	json_decref(info);
	return r < 0 ? r : take_fd(&fd);
}

int pale_session_start(const struct pale_policy *policy, const struct pale_session_options *options,
		       struct pale_session **ret, struct pale_err *err)
{
	NEED_ERR(err);
	struct pale_session_options o = {0};
	struct pale_session *s;
	int r = api_take(&o, sizeof(o), options, "struct pale_session_options", err);

	*ret = NULL;
	if (r == 0 && o.name && !session_name_valid(o.name))
		r = err_set(
			err, PALE_E_USAGE, STAGE, 0,
			"%s is no name for a session: at most 64 letters, digits, `_`, `-` and "
			"`.`, a letter or a digit first, other than `last` and of another length "
			"than an id",
			QUOTED(o.name));
	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err, STAGE);
	s->fd = -1;
	if (o.pool != PALE_POOL_NEVER) {
		r = s->fd = claim(policy, &o, s->id, err);
		s->warm = r >= 0;
	}
	/* Without one it is made here and now. */
	if (r == -PALE_E_NOTFOUND && o.pool == PALE_POOL_IF_ANY)
		r = 0;
	if (r == 0 && s->fd < 0) {
		r = start_cold(policy, &o, s->id, err);
		if (r == 0)
			r = s->fd = api_door_open(s->id, err);
	}
	if (r < 0) {
		pale_session_close(s);
		return -(int)err->code;
	}
	*ret = s;
	return 0;
}

int pale_session_new(const struct pale_policy *policy, const struct pale_session_options *options,
		     char ret[PALE_ID_SIZE], struct pale_err *err)
{
	NEED_ERR(err);
	struct pale_session *s;
	int r = pale_session_start(policy, options, &s, err);

	if (r < 0)
		return r;
	memcpy(ret, s->id, PALE_ID_SIZE);
	pale_session_close(s);
	return 0;
}

bool pale_session_warm(const struct pale_session *s)
{
	return s->warm;
}

int pale_session_open(const char *ref, struct pale_session **ret, struct pale_err *err)
{
	NEED_ERR(err);
	struct pale_session *s = calloc(1, sizeof(*s));
	int r;

	*ret = NULL;
	if (ref && !*ref)
		r = err_set(err, PALE_E_USAGE, STAGE, 0, "the session's name is empty");
	else
		r = s ? 0 : err_nomem(err, STAGE);
	if (r < 0) {
		free(s);
		return r;
	}
	r = api_box_find(ref, true, s->id, err);
	s->fd = r < 0 ? -1 : api_door_open(s->id, err);
	if (r == 0 && s->fd < 0 && err->code == PALE_E_NOTFOUND)
		err_set(err, PALE_E_NOTFOUND, STAGE, 0,
			"the session %s has ended: `pale audit show %s` tells how", s->id, s->id);
	if (s->fd < 0) {
		free(s);
		return -(int)err->code;
	}
	*ret = s;
	return 0;
}

void pale_session_close(struct pale_session *s)
{
	if (!s)
		return;
	close_fd(&s->fd);
	free(s);
}

const char *pale_session_id(const struct pale_session *s)
{
	return s->id;
}

/* options: those whose on_wake is to be called meanwhile, or NULL. 1: it leaves. */
static int call(struct pale_session *s, const char *command, json_t *arguments, uint64_t wait_ms,
		const struct pale_exec_options *options, json_t **ret, struct pale_err *err)
{
	struct api_wake wake = {0};
	int r;

	if (options && options->on_wake)
		wake = (struct api_wake){options->wake_fd, options->on_wake, options->arg};
	/* Left before its answer came, a connection was of no use any more. */
	if (s->fd < 0)
		s->fd = api_door_open(s->id, err);
	if (s->fd < 0) {
		json_decref(arguments);
		return s->fd;
	}
	r = api_door_ask(s->fd, s->id, command, arguments, (unsigned)(wait_ms / 1000) + SLACK_S,
			 wake.fn ? &wake : NULL, ret, err);
	if (r == 1 || (r < 0 && (err->code == PALE_E_SYSTEM || err->code == PALE_E_NOTFOUND)))
		close_fd(&s->fd);
	return r;
}

int pale_session_call(struct pale_session *s, const char *command, const char *arguments,
		      uint64_t wait_ms, char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	json_t *o = arguments ? json_loads(arguments, JSON_REJECT_DUPLICATES, NULL) : json_object();
	json_t *result = NULL;
	int r;

	if (ret)
		*ret = NULL;
	if (!json_is_object(o)) {
		json_decref(o);
		return err_set(err, PALE_E_USAGE, STAGE, 0, "arguments: a JSON object");
	}
	r = call(s, command, o, wait_ms, NULL, &result, err);
	if (r == 0 && ret) {
		*ret = json_dumps(result, JSON_COMPACT | JSON_ENSURE_ASCII);
		if (!*ret)
			r = err_nomem(err, STAGE);
	}
	json_decref(result);
	return r;
}

/* Events to the caller, or to the list. 1: the caller leaves. */
static int pass(const struct pale_exec_options *o, json_t *answer, json_t *kept,
		struct pale_err *err)
{
	json_t *event, *events = json_object_get(answer, "events");
	size_t i;

	if (!o->on_event)
		return json_array_extend(kept, events) < 0 ? err_nomem(err, STAGE) : 0;
	json_array_foreach(events, i, event)
	{
		_cleanup_free_ char *text = json_dumps(event, JSON_COMPACT | JSON_ENSURE_ASCII);

		if (!text)
			return err_nomem(err, STAGE);
		if (o->on_event(o->arg, text) != 0)
			return 1;
	}
	return 0;
}

/* From the first answer to the result. answer is stolen. */
static int follow(struct pale_session *s, const struct pale_exec_options *o, json_t *answer,
		  char **ret, struct pale_err *err)
{
	json_t *kept = json_array(), *result;
	bool told = false;
	int r = 0;

	while (r == 0) {
		json_int_t id = json_integer_value(json_object_get(answer, "execution"));

		if (!told && o->on_id)
			o->on_id(o->arg, (uint32_t)id);
		told = true;
		r = pass(o, answer, kept, err);
		result = json_object_get(answer, "result");
		if (r != 0)
			break;
		if (result) {
			json_object_set(result, "omitted_bytes",
					json_object_get(answer, "omitted_bytes"));
			if (!o->on_event)
				json_object_set(result, "events", kept);
			*ret = json_dumps(result, JSON_COMPACT | JSON_ENSURE_ASCII);
			r = *ret ? 1 : err_nomem(err, STAGE);
			break;
		}
		json_t *next =
			json_pack("{s:I, s:O, s:I}", "execution", id, "from",
				  json_object_get(answer, "next"), "wait_ms", (json_int_t)WAIT_MS);

		json_decref(answer);
		answer = NULL;
		r = call(s, "session.output", next, WAIT_MS, o, &answer, err);
	}
	json_decref(answer);
	json_decref(kept);
	return r < 0 ? r : 0;
}

int pale_session_exec(struct pale_session *s, const char *code, size_t len,
		      const struct pale_exec_options *options, char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	struct pale_exec_options o = {0};
	json_t *arguments, *answer = NULL;
	/* A stream wants its first line at once; who only wants the end is told then. */
	uint64_t wait_ms;
	int r = api_take(&o, sizeof(o), options, "struct pale_exec_options", err);

	*ret = NULL;
	if (r < 0)
		return r;
	if (str_utf8_prefix(code, len) != len)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "the code is not UTF-8");
	wait_ms = o.on_event || o.on_id ? 0 : WAIT_MS;
	arguments = json_pack("{s:o, s:I}", "code", json_stringn_nocheck(code, len), "wait_ms",
			      (json_int_t)wait_ms);
	if (arguments && o.timeout_ms)
		json_object_set_new(arguments, "timeout_ms",
				    json_integer((json_int_t)o.timeout_ms));
	if (arguments && o.rollback)
		json_object_set_new(arguments, "rollback", json_boolean(o.rollback > 0));
	r = call(s, "session.exec", arguments, wait_ms, &o, &answer, err);
	return answer ? follow(s, &o, answer, ret, err) : r < 0 ? r : 0;
}

int pale_session_follow(struct pale_session *s, uint32_t execution, uint64_t from,
			const struct pale_exec_options *options, char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	struct pale_exec_options o = {0};
	json_t *answer = NULL;
	int r = api_take(&o, sizeof(o), options, "struct pale_exec_options", err);

	*ret = NULL;
	if (r == 0)
		r = call(s, "session.output",
			 json_pack("{s:I, s:I}", "execution", (json_int_t)execution, "from",
				   (json_int_t)from),
			 0, &o, &answer, err);
	return answer ? follow(s, &o, answer, ret, err) : r < 0 ? r : 0;
}

int pale_session_list(void (*fn)(void *arg, const char *json), void *arg, struct pale_err *err)
{
	NEED_ERR(err);
	_cleanup_state_ struct audit_state state = AUDIT_STATE_NONE;
	_cleanup_free_ char(*ids)[AUDIT_ID_SIZE] = NULL;
	size_t n = 0;
	int r = audit_state_open(&state, err);

	if (r < 0)
		return r;
	r = audit_state_list_active(&state, &ids, &n);
	if (r < 0)
		return err_set(err, PALE_E_AUDIT, STAGE, -r, "reading the list of live runs");
	for (size_t i = 0; i < n; i++) {
		json_t *info = NULL, *session;
		struct pale_err why = {0};
		_cleanup_close_ int fd = -1, dir = -1;
		char to[2];

		/* Only those with a door can be asked, and one may end meanwhile. */
		if (audit_state_run(&state, ids[i], O_RDONLY, &dir, NULL, &why) == 0) {
			if (readlinkat(dir, RUNTIME_LINK, to, sizeof(to)) < 0 && errno == ENOENT)
				continue;
			fd = api_door_open(ids[i], &why);
		}
		if (fd < 0 || api_door_ask(fd, ids[i], "info", json_object(), LOOK_S, NULL, &info,
					   &why) < 0) {
			/* It is there, and nobody knows whether it is a session. */
			if (r == 0 && why.code != PALE_E_NOTFOUND) {
				*err = why;
				r = -(int)why.code;
			}
			continue;
		}
		/* A pool's that nobody has taken is nobody's session. */
		session = json_object_get(info, "session");
		if (session && !json_is_true(json_object_get(session, "held"))) {
			_cleanup_free_ char *text =
				json_dumps(info, JSON_COMPACT | JSON_ENSURE_ASCII);

			if (text)
				fn(arg, text);
		}
		json_decref(info);
	}
	return r;
}
