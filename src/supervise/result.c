/* Results: see result.h. Pure data. */
#include "result.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"

static const char *const outcome_names[] = {
	[OUTCOME_EXIT] = "exit",	   [OUTCOME_SIGNAL] = "signal",
	[OUTCOME_WALL] = "wall time",	   [OUTCOME_CPU] = "cpu time",
	[OUTCOME_MEMORY] = "memory",	   [OUTCOME_FILE_SIZE] = "file size",
	[OUTCOME_OUTPUT] = "output",	   [OUTCOME_INTERRUPTED] = "interrupted",
	[OUTCOME_DESTROYED] = "destroyed", [OUTCOME_FAILED] = "failed",
};

static const struct {
	const char *name, *unit;
} limits[] = {
	[LIMIT_WALL] = {"wall", "ms"},
	[LIMIT_CPU] = {"cpu", "ms"},
	[LIMIT_MEMORY] = {"memory", "bytes"},
	[LIMIT_PROCESSES] = {"processes", ""},
	[LIMIT_DISK] = {"disk", "bytes"},
	[LIMIT_INODES] = {"inodes", ""},
	[LIMIT_FILE_SIZE] = {"file_size", "bytes"},
	[LIMIT_OUTPUT] = {"output_total", "bytes"},
};

const char *outcome_name(enum outcome o)
{
	return outcome_names[o];
}

const char *limit_name(enum limit l)
{
	return limits[l].name;
}

const char *limit_unit(enum limit l)
{
	return limits[l].unit;
}

void result_done(struct result *r)
{
	json_decref(r->best_effort);
	json_decref(r->blocked);
	json_decref(r->hints);
	json_decref(r->network);
	json_decref(r->published);
	json_decref(r->changes);
	json_decref(r->collected);
	output_free(r->output);
	*r = (struct result){0};
}

int result_exit_status(const struct result *r)
{
	switch (r->outcome) {
	/* "All is well" is not true of a run whose results are lost. */
	case OUTCOME_EXIT: return r->status == 0 && r->lost ? 125 : r->status;
	case OUTCOME_SIGNAL: return 128 + r->status;
	case OUTCOME_INTERRUPTED: return 130;
	case OUTCOME_DESTROYED: return 128 + 9;
	case OUTCOME_FAILED: return r->exec_error ? r->status : 125;
	case OUTCOME_WALL:
	case OUTCOME_CPU:
	case OUTCOME_MEMORY:
	case OUTCOME_FILE_SIZE:
	case OUTCOME_OUTPUT: return 124;
	}
	return 125;
}

static const char *format(char out[static NUM_TEXT], enum limit l, uint64_t value)
{
	if (strcmp(limits[l].unit, "bytes") == 0)
		return num_format_size(out, value);
	if (strcmp(limits[l].unit, "ms") == 0)
		return num_format_duration(out, value);
	snprintf(out, NUM_TEXT, "%" PRIu64, value);
	return out;
}

/* What was used, as a person reads it beside the limit: "138.1MiB of 128MiB". */
static const char *format_used(char out[static NUM_TEXT], enum limit l, uint64_t value)
{
	if (strcmp(limits[l].unit, "bytes") == 0)
		return num_round_size(out, value);
	if (strcmp(limits[l].unit, "ms") == 0)
		return num_round_duration(out, value);
	return format(out, l, value);
}

const char *result_describe(const struct result *r, char *out, size_t size)
{
	char used[NUM_TEXT], max[NUM_TEXT];
	size_t n = 0;

	if (r->outcome == OUTCOME_EXIT)
		snprintf(out, size, "exit status %d", r->status);
	else if (r->outcome == OUTCOME_SIGNAL)
		snprintf(out, size, "signal %d (%s)", r->status, strsignal(r->status));
	else
		snprintf(out, size, "%s", outcome_names[r->outcome]);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_hit *h = &r->limits[i];

		n = strlen(out);
		if (!h->hit)
			continue;
		if (h->ended)
			snprintf(out, size, "ended by its limit: %s, %s of %s", limits[i].name,
				 format_used(used, (enum limit)i, h->used),
				 format(max, (enum limit)i, h->max));
		else
			snprintf(out + n, size - n, "; limit hit: %s, %s", limits[i].name,
				 format(max, (enum limit)i, h->max));
	}
	return out;
}

json_t *result_usage_json(const struct result *r)
{
	return json_pack("{sI sI sI sI sI sI sI sI sI}", "wall_ms", (json_int_t)r->wall_ms,
			 "cpu_ms", (json_int_t)r->cpu_ms, "throttled_ms",
			 (json_int_t)r->throttled_ms, "memory_peak_bytes",
			 (json_int_t)r->memory_peak_bytes, "processes_peak",
			 (json_int_t)r->processes_peak, "disk_bytes", (json_int_t)r->disk_bytes,
			 "disk_inodes", (json_int_t)r->disk_inodes, "stdout_bytes",
			 (json_int_t)r->output_bytes[OUTPUT_STDOUT], "stderr_bytes",
			 (json_int_t)r->output_bytes[OUTPUT_STDERR]);
}

static json_t *limits_json(const struct result *r)
{
	json_t *a = json_array();

	for (int i = 0; i < LIMIT_COUNT; i++)
		if (r->limits[i].hit)
			json_array_append_new(
				a, json_pack("{ss sI sI ss sb}", "limit", limits[i].name, "max",
					     (json_int_t)r->limits[i].max, "used",
					     (json_int_t)r->limits[i].used, "unit", limits[i].unit,
					     "ended", r->limits[i].ended));
	return a;
}

json_t *result_to_json(const struct result *r)
{
	char text[256];
	json_t *o = json_object();

	json_object_set_new(o, "outcome", json_string(outcome_names[r->outcome]));
	json_object_set_new(o, "summary", json_string(result_describe(r, text, sizeof(text))));
	json_object_set_new(o, "exit_status", json_integer(result_exit_status(r)));
	if (r->outcome == OUTCOME_SIGNAL)
		json_object_set_new(o, "signal", json_integer(r->status));
	json_object_set_new(o, "limits_hit", limits_json(r));
	if (r->output && output_to_json(r->output, o, NULL) < 0) {
		json_decref(o);
		return NULL;
	}
	json_object_set_new(o, "usage", result_usage_json(r));
	json_object_set(o, "best_effort", r->best_effort);
	json_object_set_new(o, "killed_leftovers", json_integer((json_int_t)r->leftover));
	json_object_set(o, "blocked", r->blocked);
	if (r->hints)
		json_object_set(o, "hints", r->hints);
	if (r->network)
		json_object_set(o, "network", r->network);
	if (r->published)
		json_object_set(o, "published", r->published);
	json_object_set(o, "changes", r->changes);
	json_object_set(o, "collected", r->collected);
	json_object_set_new(o, "audit_id", json_string(r->id));
	json_object_set_new(o, "audit_head", json_string(r->head));
	return o;
}
