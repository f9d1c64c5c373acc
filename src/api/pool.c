/* Pools for the library's callers: see pale.h. In the caller's process with its privileges. */
#include "api.h"

#include <string.h>

#include "base/fd.h"
#include "pool/pool.h"

#define STAGE	 "pool"
#define ANSWER_S 10

int pale_pool_start(const struct pale_policy *policy, const struct pale_pool_options *options,
		    struct pale_err *err)
{
	NEED_ERR(err);
	struct pale_pool_options o = {0};
	struct pale_command command = {.size = sizeof(command)};
	struct pale_run_options run = {.size = sizeof(run),
				       .use_fds = true,
				       .in = -1,
				       .out = -1,
				       .err = -1,
				       .ordered = true};
	struct pale_result *result = NULL;
	struct pale_box *box;
	int r = api_take(&o, sizeof(o), options, "struct pale_pool_options", err);

	if (r == 0 && (o.boxes < 1 || o.boxes > POOL_SIZE_MAX))
		r = err_set(err, PALE_E_USAGE, STAGE, 0, "a pool holds 1 to %d boxes",
			    POOL_SIZE_MAX);
	if (r == 0)
		r = pool_possible(policy->model, err);
	if (r < 0)
		return r;
	command.cwd = o.cwd;
	command.env = o.env;
	run.base_policy = o.base_policy;
	r = api_box_start(policy, &command, &run, true, o.boxes, NULL, &box, err);
	if (r < 0)
		return r;
	r = api_box_ready(box, err);
	if (r == 0)
		r = pale_box_wait(box, &result, err);
	pale_result_free(result);
	pale_box_free(box);
	return r < 0 ? r : 0;
}

/* One command to one pool; ret may be NULL. */
static int ask(const char *key, const char *command, json_t **ret, struct pale_err *err)
{
	_cleanup_close_ int fd = pool_connect(key, err);

	if (fd < 0)
		return fd;
	return api_door_ask(fd, "of the pool", command, json_object(), ANSWER_S, NULL, ret, err);
}

static int each(const char *command, const char *prefix, void (*fn)(void *arg, const char *json),
		void *arg, size_t *ret_n, struct pale_err *err)
{
	_cleanup_free_ char(*keys)[POOL_KEY_SIZE] = NULL;
	size_t n;
	int r = pool_list(&keys, &n, err);

	*ret_n = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		_cleanup_free_ char *text = NULL;
		struct pale_err ignored;
		json_t *o = NULL;

		/* What a killed one left is none. */
		if ((prefix && strncmp(keys[i], prefix, strlen(prefix)) != 0) ||
		    ask(keys[i], command, &o, &ignored) < 0)
			continue;
		++*ret_n;
		text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);
		json_decref(o);
		if (text && fn)
			fn(arg, text);
	}
	return r;
}

int pale_pool_list(void (*fn)(void *arg, const char *json), void *arg, struct pale_err *err)
{
	NEED_ERR(err);
	size_t n;

	return each("pool.show", NULL, fn, arg, &n, err);
}

int pale_pool_stop(const char *key, struct pale_err *err)
{
	NEED_ERR(err);
	size_t n;
	int r = each("pool.stop", key, NULL, NULL, &n, err);

	if (r == 0 && n == 0 && key)
		r = err_set(err, PALE_E_NOTFOUND, STAGE, 0,
			    "no pool runs whose key begins so; `pale pool ls` shows those that do");
	return r < 0 ? r : (int)n;
}
