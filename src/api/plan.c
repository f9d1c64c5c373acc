/* Plans and the doctor for the library's callers: see pale.h. Runs in the caller's process with its
 * privileges; looks at the host and changes nothing. */
#include "api.h"

#include <string.h>

#include "isolation/doctor.h"

#define STAGE "plan"

extern char **environ;

int api_request(const struct pale_policy *policy, const struct pale_command *command, bool ordered,
		struct plan_request *ret, char **ret_cwd, struct pale_err *err)
{
	struct pale_command c = {0};
	int r = api_take(&c, sizeof(c), command, "struct pale_command", err);

	*ret_cwd = NULL;
	if (r < 0)
		return r;
	if (c.cwd && c.cwd[0] != '/')
		return err_set(err, PALE_E_USAGE, STAGE, 0,
			       "the command's working directory must be absolute");
	if (!c.cwd)
		*ret_cwd = getcwd(NULL, 0);
	*ret = (struct plan_request){
		.policy = policy->model,
		.argv = c.argv,
		.code = c.code,
		.lang = c.lang,
		.cwd = c.cwd ? c.cwd : *ret_cwd,
		.env = c.env ? c.env : environ,
		.tty = c.tty,
		.ordered = ordered,
		.files = c.files,
		.nfiles = c.nfiles,
	};
	return 0;
}

int pale_plan_new(const struct pale_policy *policy, const struct pale_command *command,
		  struct pale_plan **ret, struct pale_err *err)
{
	NEED_ERR(err);
	_cleanup_free_ char *cwd = NULL;
	struct plan_request request;
	struct pale_plan *p;
	int r;

	*ret = NULL;
	r = api_request(policy, command, false, &request, &cwd, err);
	if (r < 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_nomem(err, STAGE);
	r = plan_make(&request, &p->model, err);
	/* A run makes the promises later, while its box builds itself. */
	if (r == 0)
		r = plan_promise(p->model, err);
	if (r < 0) {
		plan_free(p->model);
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pale_plan_free(struct pale_plan *p)
{
	if (!p)
		return;
	plan_free(p->model);
	free(p);
}

int pale_plan_digest(const struct pale_plan *p, char ret[65], struct pale_err *err)
{
	NEED_ERR(err);
	return plan_digest(p->model, ret, err);
}

int pale_plan_json(const struct pale_plan *p, char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	json_t *o = plan_to_json(p->model);
	char digest[65];
	int r = o ? plan_digest(p->model, digest, err) : err_nomem(err, STAGE);

	if (r == 0 && json_object_set_new(o, "digest", json_string(digest)) < 0)
		r = err_nomem(err, STAGE);
	*ret = r == 0 ? json_dumps(o, JSON_INDENT(2) | JSON_ENSURE_ASCII) : NULL;
	if (r == 0 && !*ret)
		r = err_nomem(err, STAGE);
	json_decref(o);
	return r;
}

void pale_plan_print(const struct pale_plan *p, FILE *out, unsigned flags)
{
	plan_print(p->model, out, flags & PALE_PRINT_COLOUR, flags & PALE_PRINT_STEPS);
}

int pale_doctor(char **ret, FILE *out, unsigned flags, struct pale_err *err)
{
	NEED_ERR(err);
	struct doctor d;
	int r = doctor_run(&d, err);

	if (r < 0)
		return r;
	if (out)
		doctor_print(&d, out, flags & PALE_PRINT_COLOUR);
	if (ret) {
		json_t *o = doctor_to_json(&d);

		*ret = o ? json_dumps(o, JSON_INDENT(2) | JSON_ENSURE_ASCII) : NULL;
		json_decref(o);
		if (!*ret)
			return err_nomem(err, STAGE);
	}
	return d.enforceable;
}
