/* Export: see export.h. The format follows opentelemetry-proto's logs.proto in OTLP's JSON
 * encoding: 64-bit integers are strings, severityNumber is a number, attribute values are AnyValue
 * objects. What is read may have been altered; it is encoded anew. */
#include "export.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "audit/events.h"
#include "audit/lines.h"
#include "audit/state.h"

#define STAGE "audit"

static const struct {
	int number;
	const char *text;
} severities[] = {{9, "INFO"}, {13, "WARN"}, {13, "WARN"}, {17, "ERROR"}};

static json_t *any_value(const json_t *v, unsigned depth)
{
	char text[32];
	json_t *list;

	if (depth > 16)
		return json_pack("{s:s}", "stringValue", "...");
	switch (json_typeof(v)) {
	case JSON_STRING: return json_pack("{s:O}", "stringValue", v);
	case JSON_TRUE:
	case JSON_FALSE: return json_pack("{s:O}", "boolValue", v);
	case JSON_REAL: return json_pack("{s:O}", "doubleValue", v);
	case JSON_INTEGER:
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		return json_pack("{s:s}", "intValue", text);
	case JSON_NULL: return json_object();
	case JSON_ARRAY: {
		size_t i;
		json_t *e;

		list = json_array();
		json_array_foreach((json_t *)(uintptr_t)v, i, e)
			json_array_append_new(list, any_value(e, depth + 1));
		return json_pack("{s:{s:o}}", "arrayValue", "values", list);
	}
	case JSON_OBJECT: {
		const char *key;
		json_t *e;

		list = json_array();
		json_object_foreach((json_t *)(uintptr_t)v, key, e)
			json_array_append_new(list, json_pack("{s:s, s:o}", "key", key, "value",
							      any_value(e, depth + 1)));
		return json_pack("{s:{s:o}}", "kvlistValue", "values", list);
	}
	}
	return NULL;
}

/* "2026-01-31T12:00:00.123456Z" in nanoseconds since 1970, as text. */
static void unix_nano(const char *time, char out[static 32])
{
	struct tm tm = {0};
	const char *end = strptime(time, "%Y-%m-%dT%H:%M:%S", &tm);
	unsigned us = 0;

	if (end && *end == '.')
		for (int i = 1; i <= 6; i++)
			us = us * 10 +
			     (end[i] >= '0' && end[i] <= '9' ? (unsigned)(end[i] - '0') : 0u);
	long long s = end ? (long long)timegm(&tm) : 0;

	snprintf(out, 32, "%lld%06u000", s > 0 ? s : 0, us);
}

static int record(void *arg, const json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "event"));
	const char *time = json_string_value(json_object_get(event, "time"));
	enum audit_severity severity = audit_event_severity(name);
	json_t *attributes = json_array(), *value, *out;
	const char *key;
	char nano[32];

	unix_nano(time, nano);
	json_object_foreach((json_t *)(uintptr_t)event, key, value)
	{
		char full[160];

		if (strcmp(key, "time") == 0 || strcmp(key, "run") == 0)
			continue;
		snprintf(full, sizeof(full),
			 strcmp(key, "event") == 0 ? "event.name" : "pale.%.140s", key);
		json_array_append_new(attributes, json_pack("{s:s, s:o}", "key", full, "value",
							    any_value(value, 0)));
	}
	out = json_pack("{s:s, s:s, s:i, s:s, s:s, s:{s:s}, s:o}", "timeUnixNano", nano,
			"observedTimeUnixNano", nano, "severityNumber", severities[severity].number,
			"severityText", severities[severity].text, "eventName", name, "body",
			"stringValue", name, "attributes", attributes);
	return json_array_append_new(arg, out) < 0 ? -PALE_E_NOMEM : 0;
}

static void free_json(json_t **j)
{
	json_decref(*j);
}

int audit_export_otlp(FILE *to, const char *id, struct pale_err *err)
{
	_cleanup_(free_json) json_t *records = json_array();
	int r = audit_read(id, record, records, err);

	if (r == -PALE_E_NOMEM)
		return err_nomem(err, STAGE);
	if (r < 0)
		return r;
	_cleanup_(free_json) json_t *all = json_pack(
		"{s:[{s:{s:[{s:s,s:{s:s}}, {s:s,s:{s:s}}]}, s:[{s:{s:s, s:s}, s:O}]}]}",
		"resourceLogs", "resource", "attributes", "key", "service.name", "value",
		"stringValue", "pale", "key", "pale.run", "value", "stringValue", id, "scopeLogs",
		"scope", "name", "pale.audit", "version", PALE_VERSION, "logRecords", records);

	if (!all)
		return err_nomem(err, STAGE);
	if (json_dumpf(all, to, JSON_COMPACT | JSON_ENSURE_ASCII) < 0 || fputc('\n', to) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "writing the export");
	return 0;
}

int audit_export_jsonl(FILE *to, const char *id, struct pale_err *err)
{
	_cleanup_close_ int log = audit_state_open_log(id, err);
	const char *text;
	size_t len;
	int r;

	if (log < 0)
		return log;
	_cleanup_log_lines_ struct log_lines lines = LOG_LINES(log);

	while ((r = log_next(&lines, &text, &len)) > 0)
		if (fwrite(text, 1, len, to) != len || fputc('\n', to) < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno, "writing the export");
	return r < 0 ? err_set(err, PALE_E_AUDIT, STAGE, -r, "reading the log of run %s", id) : 0;
}
