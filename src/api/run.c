/* Running: see pale.h. Here the caller's process is the supervisor itself; box.c has the other way,
 * in which a pale-box is. Runs with the caller's privileges; the policy and the command are
 * trusted. */
#include "api.h"

#include <pwd.h>
#include <string.h>

#include "base/str.h"
#include "pool/pool.h"
#include "supervise/supervise.h"

#define STAGE	    "supervise"
#define MAX_WIDENED 64

/* The caller's name from /etc/passwd: in the static command there is no NSS. */
static void put_user(json_t *o)
{
	_cleanup_file_ FILE *f = fopen("/etc/passwd", "re");
	uid_t uid = geteuid();

	for (struct passwd *p; f && (p = fgetpwent(f));)
		if (p->pw_uid == uid) {
			json_object_set_new(o, "user",
					    audit_text(p->pw_name, strlen(p->pw_name), 64));
			return;
		}
}

static json_t *start_body(void *arg, struct pale_err *err)
{
	const struct pale_policy *policy = arg;
	_cleanup_free_ char *text = NULL;
	char digest[65];
	json_t *o;

	if (policy_to_json(policy->model, &text, err) < 0 ||
	    policy_digest(policy->model, digest, err) < 0)
		return NULL;
	o = json_pack("{ss so ss}", "policy_name", pale_policy_name(policy), "policy",
		      json_loads(text, 0, NULL), "policy_digest", digest);
	if (!o)
		err_nomem(err, STAGE);
	else
		put_user(o);
	return o;
}

/* One note a point in which the policy permits more than its base. */
static json_t **widened(const struct pale_policy *base, const struct pale_policy *policy)
{
	char lines[MAX_WIDENED][160];
	int n = policy_widened(base->model, policy->model, lines, MAX_WIDENED);
	json_t **notes;

	if (n > MAX_WIDENED)
		n = MAX_WIDENED;
	notes = n > 0 ? calloc((size_t)n + 1, sizeof(*notes)) : NULL;
	for (int i = 0; notes && i < n; i++)
		notes[i] = json_pack("{ss ss so}", "stage", "policy", "event", "policy.widened",
				     "what", audit_text(lines[i], strlen(lines[i]), 160));
	return notes;
}

/* Whom the supervisor's callbacks are for. */
struct pass {
	const struct pale_run_options *options;
	void (*on_id)(void *arg, const char *id);
};

static void pass_id(void *arg, const char *id)
{
	const struct pass *p = arg;

	p->on_id(p->options->arg, id);
}

static void pass_output(void *arg, enum output_stream stream, const char *data, size_t len)
{
	const struct pale_run_options *o = ((const struct pass *)arg)->options;

	if (o->use_fds && (stream == OUTPUT_STDOUT ? o->out : o->err) >= 0)
		return;
	o->on_output(o->arg, stream == OUTPUT_STDOUT ? PALE_STDOUT : PALE_STDERR, data, len);
}

static void pass_event(void *arg, const json_t *event)
{
	const struct pale_run_options *o = ((const struct pass *)arg)->options;
	_cleanup_free_ char *text = json_dumps(event, JSON_COMPACT | JSON_ENSURE_ASCII);

	if (text)
		o->on_event(o->arg, text);
}

int api_run_here(const struct pale_policy *policy, const struct plan_request *request,
		 const struct pale_run_options *options, const struct supervise_session *session,
		 int control, int caller_pidfd, void (*on_id)(void *arg, const char *id),
		 struct pale_result **ret, struct pale_err *err)
{
	struct pass pass = {options, on_id};
	_cleanup_plan_ struct plan *plan = NULL;
	struct supervise_request supervise = {
		.session = session,
		.in = options->use_fds ? options->in : -1,
		.out = options->use_fds ? options->out : -1,
		.err = options->use_fds ? options->err : -1,
		.control = control,
		.caller_pidfd = caller_pidfd,
		.keep_output = options->keep_output,
		.own_process = options->handle_signals || caller_pidfd > 0,
		.handle_signals = options->handle_signals,
		.interrupts_only = options->interrupts_only,
		.grace_ms = options->grace_ms,
		.on_output = options->on_output ? pass_output : NULL,
		.on_event = options->on_event ? pass_event : NULL,
		.on_id = on_id ? pass_id : NULL,
		.arg = &pass,
	};
	struct result result = {0};
	json_t **notes = NULL;
	int r = plan_make(request, &plan, err);

	if (r < 0)
		return r;
	supervise.plan = plan;
	supervise.start = start_body;
	supervise.start_arg = (void *)(uintptr_t)policy;
	if (options->base_policy)
		notes = widened(options->base_policy, policy);
	supervise.notes = notes;
	r = supervise_run(&supervise, &result, err);
	for (json_t **n = notes; n && *n; n++)
		json_decref(*n);
	free(notes);
	if (r < 0) {
		result_done(&result);
		return r;
	}
	return api_result(&result, ret, err);
}

int api_pool_here(const struct pale_policy *policy, const struct plan_request *request,
		  const struct pale_run_options *options, unsigned size, void (*ready)(void *arg),
		  struct pale_err *err)
{
	_cleanup_plan_ struct plan *plan = NULL;
	struct pool_request pool = {
		.name = pale_policy_name(policy),
		.size = size,
		.start = start_body,
		.start_arg = (void *)(uintptr_t)policy,
		.ready = ready,
		.arg = options->arg,
	};
	char key[POOL_KEY_SIZE];
	json_t **notes = NULL;
	int r = pool_possible(policy->model, err);

	if (r == 0)
		r = pool_key(policy->model, request->env, key, err);
	if (r == 0)
		r = plan_make(request, &plan, err);
	if (r == 0)
		r = plan_settle(plan, err);
	if (r < 0)
		return r;
	pool.key = key;
	pool.plan = plan;
	if (options->base_policy)
		notes = widened(options->base_policy, policy);
	pool.notes = notes;
	r = pool_run(&pool, err);
	for (json_t **n = notes; n && *n; n++)
		json_decref(*n);
	free(notes);
	return r;
}

/* What a run without options is: no input, output kept. */
int api_options(const struct pale_run_options *options, struct pale_run_options *ret,
		struct pale_err *err)
{
	int r;

	*ret = (struct pale_run_options){0};
	r = api_take(ret, sizeof(*ret), options, "struct pale_run_options", err);
	if (!ret->use_fds && !ret->on_output)
		ret->keep_output = true;
	return r;
}

int pale_run(const struct pale_policy *policy, const struct pale_command *command,
	     const struct pale_run_options *options, struct pale_result **ret, struct pale_err *err)
{
	NEED_ERR(err);
	_cleanup_free_ char *cwd = NULL;
	struct plan_request request;
	struct pale_run_options o;
	struct pale_box *box;
	int r;

	*err = (struct pale_err){0};
	*ret = NULL;
	r = api_options(options, &o, err);
	if (r < 0)
		return r;
	if (!o.in_process) {
		r = pale_box_start(policy, command, options, &box, err);
		if (r < 0)
			return r;
		r = pale_box_wait(box, ret, err);
		pale_box_free(box);
		return r;
	}
	r = api_request(policy, command, o.ordered, &request, &cwd, err);
	return r < 0 ? r
		     : api_run_here(policy, &request, &o, NULL, -1, o.parent_pidfd, NULL, ret, err);
}
