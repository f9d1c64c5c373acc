/* Results for the library's callers: see pale.h. Data only; the output in it is hostile bytes. */
#include "api.h"

#include <string.h>

#include "supervise/result.h"

#define STAGE "supervise"

static uint64_t count_limits(const struct result *r)
{
	uint64_t n = 0;

	for (int i = 0; i < LIMIT_COUNT; i++)
		n += r->limits[i].hit;
	return n;
}

/* Overlays in which something changed, or whose changes could not be read. */
static uint64_t count_changes(const struct result *r)
{
	static const char *const kinds[] = {"added", "modified", "deleted", "other", "refused"};
	uint64_t n = 0;
	json_t *overlay;
	size_t i;

	json_array_foreach(r->changes, i, overlay)
	{
		json_int_t sum = 0;

		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			sum += json_integer_value(json_object_get(overlay, kinds[k]));
		n += sum > 0 || json_object_get(overlay, "error");
	}
	return n;
}

static uint64_t count_unchangeable(const struct result *r)
{
	uint64_t n = 0;
	json_t *overlay;
	size_t i;

	json_array_foreach(r->changes, i, overlay) n +=
		json_object_get(overlay, "unchangeable") != NULL;
	return n;
}

int api_result(struct result *model, struct pale_result **ret, struct pale_err *err)
{
	struct pale_result *r = calloc(1, sizeof(*r));
	int e = 0;

	*ret = NULL;
	if (!r || !(r->model = malloc(sizeof(*model)))) {
		free(r);
		result_done(model);
		return err_nomem(err, STAGE);
	}
	*r->model = *model;
	r->exit_status = result_exit_status(model);
	snprintf(r->outcome, sizeof(r->outcome), "%s", outcome_name(model->outcome));
	result_describe(model, r->summary, sizeof(r->summary));
	snprintf(r->id, sizeof(r->id), "%s", model->id);
	r->counts[PALE_COUNT_LIMITS] = count_limits(model);
	r->counts[PALE_COUNT_BLOCKED] = json_array_size(model->blocked);
	r->counts[PALE_COUNT_LEFTOVER] = model->leftover;
	r->counts[PALE_COUNT_CHANGES] = count_changes(model);
	r->counts[PALE_COUNT_REFUSED] = model->refused;
	r->counts[PALE_COUNT_UNCHANGEABLE] = count_unchangeable(model);
	for (int i = 0; e == 0 && model->output && i < 2; i++)
		e = output_bytes(model->output, (enum output_stream)i, &r->output[i],
				 &r->output_len[i], err);
	if (e < 0) {
		pale_result_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

void pale_result_free(struct pale_result *r)
{
	if (!r)
		return;
	if (r->model)
		result_done(r->model);
	free(r->model);
	free(r->output[0]);
	free(r->output[1]);
	free(r->json);
	free(r);
}

const char *pale_result_outcome(const struct pale_result *r)
{
	return r->outcome;
}

int pale_result_exit_status(const struct pale_result *r)
{
	return r->exit_status;
}

const char *pale_result_summary(const struct pale_result *r)
{
	return r->summary;
}

const char *pale_result_audit_id(const struct pale_result *r)
{
	return r->id;
}

uint64_t pale_result_count(const struct pale_result *r, enum pale_count what)
{
	return (unsigned)what < API_COUNTS ? r->counts[what] : 0;
}

const char *pale_result_output(const struct pale_result *r, enum pale_stream stream,
			       size_t *ret_len)
{
	if (ret_len)
		*ret_len =
			stream == PALE_STDOUT || stream == PALE_STDERR ? r->output_len[stream] : 0;
	return stream == PALE_STDOUT || stream == PALE_STDERR ? r->output[stream] : NULL;
}

const char *pale_result_json(struct pale_result *r)
{
	json_t *o;

	if (r->json || !r->model)
		return r->json;
	o = result_to_json(r->model);
	r->json = o ? json_dumps(o, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
	json_decref(o);
	return r->json;
}
