/* The commands of a session: see door_session.h. In the supervisor; the arguments come from the
 * box's owner, or whoever got that far: each is looked at for its type and its range, and what is
 * not known is refused. */
#include "supervise/door_session.h"

#include <string.h>

#include "base/str.h"

#define STAGE	 "supervise"
#define WAIT_MAX 600000
#define TIME_MAX (10000LL * 3600 * 1000)

static int finish(struct door_call *call, int r, struct pale_err *err)
{
	if (r < 0) {
		call->code = control_code_of(err);
		return r;
	}
	return r == SESSION_LATER ? DOOR_LATER : 0;
}

/* A whole number from 0 to max; fallback, if it is not given. */
static int64_t number(const struct door_call *call, const char *key, int64_t max, int64_t fallback,
		      int *r, struct pale_err *err)
{
	const json_t *o = json_object_get(call->arguments, key);

	if (!o || *r < 0)
		return fallback;
	if (!json_is_integer(o) || json_integer_value(o) < 0 || json_integer_value(o) > max) {
		*r = err_set(err, PALE_E_USAGE, STAGE, 0, "`%s`: a whole number from 0 to %lld",
			     key, (long long)max);
		return fallback;
	}
	return json_integer_value(o);
}

/* -1: not given. */
static int boolean(const struct door_call *call, const char *key, int *r, struct pale_err *err)
{
	const json_t *o = json_object_get(call->arguments, key);

	if (!o || *r < 0)
		return -1;
	if (!json_is_boolean(o)) {
		*r = err_set(err, PALE_E_USAGE, STAGE, 0, "`%s`: true or false", key);
		return -1;
	}
	return json_is_true(o);
}

static const char *text(const struct door_call *call, const char *key, size_t *ret_len, bool needed,
			int *r, struct pale_err *err)
{
	const json_t *o = json_object_get(call->arguments, key);

	*ret_len = 0;
	if (*r < 0)
		return NULL;
	if (o ? !json_is_string(o) : needed) {
		*r = err_set(err, PALE_E_USAGE, STAGE, 0, "`%s`%s: a text", key,
			     o ? "" : " is missing");
		return NULL;
	}
	*ret_len = json_string_length(o);
	return json_string_value(o);
}

static int begin(const struct door_call *call, const char *const *known, struct pale_err *err)
{
	int r = control_known(call->arguments, known, err);

	if (r == 0 && !call->config->session)
		r = err_set(err, PALE_E_HOST, STAGE, 0,
			    "this box is no session: `pale session new` makes one");
	return r;
}

int door_pool_claim(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"name", NULL};
	int r = begin(call, known, err);
	size_t len;
	const char *name = text(call, "name", &len, false, &r, err);

	if (r == 0)
		r = call->config->claim(call->config->arg, name, &call->who, err);
	if (r == 0) {
		*ret = json_pack("{s:s, s:s?}", "id", call->config->id, "name", name);
		r = *ret ? 0 : err_nomem(err, STAGE);
	}
	return finish(call, r, err);
}

int door_session_exec(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"code", "timeout_ms", "rollback", "wait_ms", NULL};
	struct session_exec x = {0};
	int r = begin(call, known, err);

	x.code = text(call, "code", &x.len, true, &r, err);
	x.timeout_ms = (uint64_t)number(call, "timeout_ms", TIME_MAX, 0, &r, err);
	x.rollback = boolean(call, "rollback", &r, err);
	x.wait_ms = (uint64_t)number(call, "wait_ms", WAIT_MAX, 0, &r, err);
	if (r == 0)
		r = session_exec(call->config->session, &x, call->client, ret, err);
	return finish(call, r, err);
}

int door_session_output(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"execution", "from", "wait_ms", NULL};
	int r = begin(call, known, err);
	uint32_t id = (uint32_t)number(call, "execution", UINT32_MAX, 0, &r, err);
	uint64_t from = (uint64_t)number(call, "from", INT64_MAX, 0, &r, err);
	uint64_t wait_ms = (uint64_t)number(call, "wait_ms", WAIT_MAX, 0, &r, err);

	if (r == 0)
		r = session_output(call->config->session, id, from, wait_ms, call->client, ret,
				   err);
	return finish(call, r, err);
}

int door_session_interrupt(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"execution", "grace_ms", "escalate", "wait_ms", NULL};
	static const char *const words[] = {
		[ESCALATE_NONE] = "none",
		[ESCALATE_ROLLBACK] = "rollback",
		[ESCALATE_RESTART] = "restart",
	};
	int r = begin(call, known, err);
	uint32_t id = (uint32_t)number(call, "execution", UINT32_MAX, 0, &r, err);
	int64_t grace = number(call, "grace_ms", TIME_MAX, -1, &r, err);
	uint64_t wait_ms = (uint64_t)number(call, "wait_ms", WAIT_MAX, 0, &r, err);
	size_t len, how = ESCALATE_ROLLBACK;
	const char *word = text(call, "escalate", &len, false, &r, err);

	if (word) {
		for (how = 0; how < ARRAY_SIZE(words) && strcmp(words[how], word) != 0; how++)
			;
		if (how == ARRAY_SIZE(words))
			r = err_set(err, PALE_E_USAGE, STAGE, 0,
				    "`escalate`: none, rollback or restart");
	}
	if (r == 0)
		r = session_interrupt(call->config->session, id, grace, (enum session_escalate)how,
				      wait_ms, call->client, ret, err);
	return finish(call, r, err);
}

static const char *const no_arguments[] = {NULL};

int door_session_undo(struct door_call *call, json_t **ret, struct pale_err *err)
{
	int r = begin(call, no_arguments, err);

	if (r == 0)
		r = session_undo(call->config->session, call->client, ret, err);
	return finish(call, r, err);
}

int door_session_restart(struct door_call *call, json_t **ret, struct pale_err *err)
{
	int r = begin(call, no_arguments, err);

	if (r == 0)
		r = session_restart(call->config->session, call->client, ret, err);
	return finish(call, r, err);
}

static int ask(struct door_call *call, bool inspect, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"code", "cursor", NULL};
	int r = begin(call, known, err);
	size_t len;
	const char *code = text(call, "code", &len, true, &r, err);
	uint32_t cursor = (uint32_t)number(call, "cursor", INT32_MAX, INT32_MAX, &r, err);

	if (r == 0)
		r = session_ask(call->config->session, inspect, code, len, cursor, call->client,
				ret, err);
	return finish(call, r, err);
}

int door_session_complete(struct door_call *call, json_t **ret, struct pale_err *err)
{
	return ask(call, false, ret, err);
}

int door_session_inspect(struct door_call *call, json_t **ret, struct pale_err *err)
{
	return ask(call, true, ret, err);
}

int door_session_input(struct door_call *call, json_t **ret, struct pale_err *err)
{
	static const char *const known[] = {"execution", "text", "eof", NULL};
	int r = begin(call, known, err), eof;
	uint32_t id = (uint32_t)number(call, "execution", UINT32_MAX, 0, &r, err);
	size_t len;
	const char *input = text(call, "text", &len, false, &r, err);

	eof = boolean(call, "eof", &r, err);
	if (r == 0)
		r = session_input(call->config->session, id, input, len, eof == 1, ret, err);
	return finish(call, r, err);
}

int door_session_show(struct door_call *call, json_t **ret, struct pale_err *err)
{
	int r = begin(call, no_arguments, err);

	if (r == 0) {
		*ret = session_show(call->config->session, true);
		r = *ret ? 0 : err_nomem(err, STAGE);
	}
	return finish(call, r, err);
}

int door_freeze(struct door_call *call, json_t **ret, struct pale_err *err)
{
	int r = begin(call, no_arguments, err);

	if (r == 0)
		r = session_freeze(call->config->session, true, call->client, ret, err);
	return finish(call, r, err);
}

int door_thaw(struct door_call *call, json_t **ret, struct pale_err *err)
{
	int r = begin(call, no_arguments, err);

	if (r == 0)
		r = session_freeze(call->config->session, false, call->client, ret, err);
	return finish(call, r, err);
}
