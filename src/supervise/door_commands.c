/* The commands of the control protocol: the one table, and what each does. In the supervisor; the
 * arguments come from the box's owner, or whoever got that far, and each handler refuses what it
 * does not know. docs/control-protocol.md is compared with the table by tests/docs. */
#include "supervise/door_files.h"
#include "supervise/door_session.h"

#define STAGE "supervise"

static const char *const no_arguments[] = {NULL};

static int finish(struct door_call *call, int r, json_t *result, json_t **ret, struct pale_err *err)
{
	if (r < 0) {
		call->code = control_code_of(err);
		return r;
	}
	*ret = result;
	call->code = CONTROL_FAILED;
	return result ? 0 : err_nomem(err, STAGE);
}

static int info(struct door_call *call, json_t **ret, struct pale_err *err)
{
	int r = control_known(call->arguments, no_arguments, err);
	json_t *o = r < 0 ? NULL : call->config->info(call->config->arg), *names;

	if (!o)
		return finish(call, r, NULL, ret, err);
	names = json_array();
	for (const struct door_command *c = door_commands; c->name; c++)
		json_array_append_new(names, json_string(c->name));
	json_object_set_new(o, "commands", names);
	return finish(call, 0, o, ret, err);
}

/* Rules can be changed where the box began with some: else it has no broker. */
static int has_network(const struct door_call *call, struct pale_err *err)
{
	return call->config->live
		       ? 0
		       : err_set(err, PALE_E_HOST, STAGE, 0,
				 "this box was started without network rules, so that it has "
				 "no way out that could be widened");
}

static int destroy(struct door_call *call, json_t **ret, struct pale_err *err)
{
	int r = control_known(call->arguments, no_arguments, err);

	if (r == 0)
		call->config->destroy(call->config->arg);
	return finish(call, r, r < 0 ? NULL : json_object(), ret, err);
}

static int network_show(struct door_call *call, json_t **ret, struct pale_err *err)
{
	int r = control_known(call->arguments, no_arguments, err);

	if (r == 0)
		r = has_network(call, err);
	return finish(call, r, r < 0 ? NULL : live_show(call->config->live), ret, err);
}

static int network_change(struct door_call *call, json_t **ret, struct pale_err *err)
{
	_cleanup_change_ struct network_change c = {0};
	struct live *live = call->config->live;
	uint64_t revision;
	int r = has_network(call, err);

	if (r < 0)
		return finish(call, r, NULL, ret, err);
	if (live_busy(live))
		return DOOR_AGAIN;
	r = control_network_change(call->arguments, &c, &revision, &call->code, err);
	if (r < 0)
		return r;
	r = live_change(live, &c, revision, &call->who, door_answer, call->client, ret, err);
	if (r < 0)
		call->code = control_code_of(err);
	return r == 1 ? DOOR_LATER : r;
}

const struct door_command door_commands[] = {
	{"info", DOOR_HELD | DOOR_RUNNING | DOOR_ENDING, info},
	{"network.show", DOOR_HELD | DOOR_RUNNING | DOOR_ENDING, network_show},
	{"network.change", DOOR_RUNNING, network_change},
	{"box.destroy", DOOR_HELD | DOOR_RUNNING, destroy},
	{"box.freeze", DOOR_RUNNING, door_freeze},
	{"box.thaw", DOOR_RUNNING, door_thaw},
	{"pool.claim", DOOR_HELD | DOOR_RUNNING, door_pool_claim},
	{"files.list", DOOR_RUNNING, door_files_list},
	{"files.stat", DOOR_RUNNING, door_files_stat},
	{"files.read", DOOR_RUNNING, door_files_read},
	{"files.write", DOOR_RUNNING, door_files_write},
	{"files.mkdir", DOOR_RUNNING, door_files_mkdir},
	{"files.link", DOOR_RUNNING, door_files_link},
	{"files.remove", DOOR_RUNNING, door_files_remove},
	{"session.exec", DOOR_RUNNING, door_session_exec},
	{"session.output", DOOR_RUNNING | DOOR_ENDING, door_session_output},
	{"session.interrupt", DOOR_RUNNING, door_session_interrupt},
	{"session.undo", DOOR_RUNNING, door_session_undo},
	{"session.restart", DOOR_RUNNING, door_session_restart},
	{"session.complete", DOOR_RUNNING, door_session_complete},
	{"session.inspect", DOOR_RUNNING, door_session_inspect},
	{"session.input", DOOR_RUNNING, door_session_input},
	{"session.show", DOOR_HELD | DOOR_RUNNING | DOOR_ENDING, door_session_show},
	{0},
};
