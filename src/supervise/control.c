/* The lines of the control protocol: see control.h. Runs in the supervisor. A line comes from a
 * process of the box's owner, or of whoever got that far: it is bounded, and believed in nothing.
 * fuzz/fuzz_control.c reads hostile ones. */
#include "supervise/control.h"

#include <string.h>

#include "base/str.h"

#define STAGE	 "supervise"
#define ID_MAX	 128
#define WORD_MAX 64
#define WHERE	 "pale network" /* where the rules were asked for, in messages and refusals */

static const char *const code_names[] = {
	[CONTROL_MALFORMED] = "malformed",
	[CONTROL_VERSION_UNKNOWN] = "version",
	[CONTROL_UNKNOWN_COMMAND] = "unknown_command",
	[CONTROL_ARGUMENTS] = "arguments",
	[CONTROL_POLICY] = "policy",
	[CONTROL_NOT_FOUND] = "not_found",
	[CONTROL_CONFLICT] = "conflict",
	[CONTROL_STATE] = "state",
	[CONTROL_BUSY] = "busy",
	[CONTROL_REFUSED] = "refused",
	[CONTROL_FAILED] = "failed",
};

const char *control_code_name(enum control_code code)
{
	return code_names[code];
}

enum control_code control_code_of(const struct pale_err *err)
{
	switch (err->code) {
	case PALE_E_USAGE: return CONTROL_ARGUMENTS;
	case PALE_E_POLICY: return CONTROL_POLICY;
	case PALE_E_NOTFOUND: return CONTROL_NOT_FOUND;
	case PALE_E_CONFLICT: return CONTROL_CONFLICT;
	case PALE_E_HOST: return CONTROL_REFUSED;
	default: return CONTROL_FAILED;
	}
}

/* ---- a request ---- */

static int fail(enum control_code code, enum control_code *ret_code, struct pale_err *err,
		const char *what)
{
	*ret_code = code;
	return err_set(err, PALE_E_USAGE, STAGE, 0, "%s", what);
}

static bool is_id(const json_t *id)
{
	return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= ID_MAX);
}

/* A key that this version does not know may change what a request means. */
static bool known_keys(const json_t *o)
{
	static const char *const known[] = {"pale", "id", "command", "arguments"};
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)o, key, value)
	{
		bool found = false;

		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			found = found || strcmp(key, known[i]) == 0;
		if (!found)
			return false;
	}
	return true;
}

int control_parse(const char *line, size_t len, struct control_request *ret,
		  enum control_code *ret_code, struct pale_err *err)
{
	json_t *version, *command, *arguments, *id;
	json_error_t e;

	*ret = (struct control_request){0};
	if (len > CONTROL_REQUEST_MAX)
		return fail(CONTROL_MALFORMED, ret_code, err, "the request is too long");
	ret->whole = json_loadb(line, len, JSON_REJECT_DUPLICATES, &e);
	if (!json_is_object(ret->whole))
		return fail(CONTROL_MALFORMED, ret_code, err,
			    "a request is a line with one JSON object");
	id = json_object_get(ret->whole, "id");
	if (id && !is_id(id))
		return fail(CONTROL_MALFORMED, ret_code, err,
			    "`id` is a whole number or a text of at most 128 bytes");
	ret->id = id;
	version = json_object_get(ret->whole, "pale");
	if (!json_is_integer(version))
		return fail(CONTROL_MALFORMED, ret_code, err, "`pale` is missing: a whole number");
	if (json_integer_value(version) != CONTROL_VERSION)
		return fail(CONTROL_VERSION_UNKNOWN, ret_code, err,
			    "this supervisor speaks version 1 of the control protocol");
	if (!known_keys(ret->whole))
		return fail(CONTROL_MALFORMED, ret_code, err,
			    "a request has pale, id, command and arguments");
	command = json_object_get(ret->whole, "command");
	if (!json_is_string(command) || json_string_length(command) > WORD_MAX)
		return fail(CONTROL_MALFORMED, ret_code, err, "`command` is missing: a text");
	arguments = json_object_get(ret->whole, "arguments");
	if (arguments && !json_is_object(arguments))
		return fail(CONTROL_MALFORMED, ret_code, err, "`arguments` is an object");
	if (!arguments) {
		arguments = json_object();
		if (!arguments || json_object_set_new(ret->whole, "arguments", arguments) < 0) {
			*ret_code = CONTROL_FAILED;
			return err_nomem(err, STAGE);
		}
	}
	ret->command = json_string_value(command);
	ret->arguments = arguments;
	return 0;
}

void control_request_done(struct control_request *r)
{
	json_decref(r->whole);
	*r = (struct control_request){0};
}

int control_known(const json_t *arguments, const char *const *known, struct pale_err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
	{
		const char *const *k = known;

		while (*k && strcmp(*k, key) != 0)
			k++;
		if (!*k)
			return err_set(err, PALE_E_USAGE, STAGE, 0, "there is no argument %s",
				       QUOTED(key));
	}
	return 0;
}

/* ---- network.change ---- */

/* Texts one by one, entries together: reading one is as dear as reading all. */
static int take_rules(json_t *list, bool deny, struct network_change *c, struct pale_err *err)
{
	json_t *entries = json_array(), *member;
	size_t i;
	int r = entries ? 0 : err_nomem(err, STAGE);

	json_array_foreach(list, i, member)
	{
		if (r < 0)
			break;
		if (json_is_string(member))
			r = network_change_add(c, deny, json_string_value(member), WHERE, err);
		else if (json_is_object(member))
			r = json_array_append(entries, member) < 0 ? err_nomem(err, STAGE) : 0;
		else
			r = err_set(err, PALE_E_USAGE, STAGE, 0,
				    "`%s`: a rule is a text or an entry of a policy",
				    deny ? "deny" : "allow");
	}
	if (r == 0 && json_array_size(entries))
		r = network_change_add_entries(c, deny, entries, WHERE, err);
	json_decref(entries);
	return r;
}

static int take_removed(json_t *list, struct network_change *c, struct pale_err *err)
{
	json_t *member;
	size_t i;
	int r = 0;

	json_array_foreach(list, i, member)
	{
		if (json_is_string(member))
			r = network_change_remove(c, json_string_value(member), WHERE, err);
		else if (json_is_integer(member) && json_integer_value(member) > 0)
			r = network_change_remove_number(c, (uint64_t)json_integer_value(member),
							 err);
		else
			r = err_set(err, PALE_E_USAGE, STAGE, 0,
				    "`remove`: the number of a rule, or a text");
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_list(json_t *arguments, const char *key, json_t **ret, struct pale_err *err)
{
	*ret = json_object_get(arguments, key);
	if (*ret && !json_is_array(*ret))
		return err_set(err, PALE_E_USAGE, STAGE, 0, "`%s` is a list", key);
	if (json_array_size(*ret) > NETWORK_CHANGE_MAX)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "`%s`: at most %d in one change", key,
			       NETWORK_CHANGE_MAX);
	return 0;
}

int control_network_change(json_t *arguments, struct network_change *ret, uint64_t *ret_revision,
			   enum control_code *ret_code, struct pale_err *err)
{
	static const char *const known[] = {"allow", "deny", "remove", "revision", NULL};
	json_t *allow, *deny, *removed, *revision = json_object_get(arguments, "revision");
	int r = network_change_init(ret, err);

	if (r == 0 && json_object_get(arguments, "secrets")) {
		*ret_code = CONTROL_REFUSED;
		return err_set(err, PALE_E_POLICY, STAGE, 0,
			       "a secret cannot be added to a box that runs: its placeholder is "
			       "put into the environment or a file before the code starts; name it "
			       "in the policy, or with --secret, and run again");
	}
	if (r == 0)
		r = control_known(arguments, known, err);
	if (r == 0)
		r = take_list(arguments, "allow", &allow, err);
	if (r == 0)
		r = take_list(arguments, "deny", &deny, err);
	if (r == 0)
		r = take_list(arguments, "remove", &removed, err);
	if (r == 0 && revision && (!json_is_integer(revision) || json_integer_value(revision) < 1))
		r = err_set(err, PALE_E_USAGE, STAGE, 0, "`revision` is that of network.show");
	if (r == 0 && !json_array_size(allow) && !json_array_size(deny) &&
	    !json_array_size(removed))
		r = err_set(err, PALE_E_USAGE, STAGE, 0,
			    "nothing to change: `allow`, `deny` or `remove` is needed");
	if (r == 0)
		r = take_removed(removed, ret, err);
	if (r == 0)
		r = take_rules(allow, false, ret, err);
	if (r == 0)
		r = take_rules(deny, true, ret, err);
	if (r < 0)
		*ret_code = control_code_of(err);
	else
		*ret_revision = revision ? (uint64_t)json_integer_value(revision) : 0;
	return r;
}

/* ---- replies ---- */

static int put(struct buf *out, const json_t *id, const char *key, json_t *what)
{
	json_t *reply = what ? json_pack("{s:i, s:o}", "pale", CONTROL_VERSION, key, what) : NULL;
	_cleanup_free_ char *text = NULL;

	if (reply && id && json_object_set(reply, "id", (json_t *)(uintptr_t)id) < 0) {
		json_decref(reply);
		return -ENOMEM;
	}
	text = reply ? json_dumps(reply, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_SORT_KEYS) : NULL;
	json_decref(reply);
	if (!text)
		return -ENOMEM;
	return buf_adds(out, text) < 0 ? -ENOMEM : buf_adds(out, "\n");
}

int control_reply(struct buf *out, const json_t *id, json_t *result)
{
	return put(out, id, "result", result);
}

int control_error(struct buf *out, const json_t *id, enum control_code code,
		  const struct pale_err *err)
{
	return put(out, id, "error",
		   json_pack("{s:s, s:s, s:s}", "code", control_code_name(code), "stage",
			     err->stage, "message", err->message));
}
