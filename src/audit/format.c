/* Events as text: see format.h. The events are hostile. */
#include "format.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"

static const char *const colours[] = {"", "\033[1;31m", "\033[1;33m", "\033[1;35m"};

const char *audit_colour_on(enum audit_severity s, bool colour)
{
	return colour ? colours[s] : "";
}

const char *audit_colour_off(bool colour)
{
	return colour ? "\033[0m" : "";
}

const char *audit_local_time(const char *time, char out[static AUDIT_LOCAL_TIME])
{
	return clock_local_text(time, out);
}

static bool skipped(const char *key)
{
	static const char *const keys[] = {"seq", "time", "run", "stage", "event", "prev"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

static int add_value(struct buf *b, const json_t *v)
{
	if (json_is_string(v)) {
		const char *s = json_string_value(v);
		size_t n = json_string_length(v);
		bool plain = n > 0;

		for (size_t i = 0; plain && i < n; i++)
			plain = s[i] > ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\' &&
				s[i] != '=';
		if (plain)
			return buf_add(b, s, n);
		if (buf_adds(b, "\"") < 0 || str_escape(b, s, n) < 0)
			return -ENOMEM;
		return buf_adds(b, "\"");
	}
	_cleanup_free_ char *text =
		json_dumps(v, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY | JSON_SORT_KEYS);

	/* ASCII, control characters escaped, but for DEL. */
	for (char *p = text; p && *p; p++)
		if (*p == 0x7f)
			*p = '?';
	return text ? buf_adds(b, text) : -ENOMEM;
}

int audit_format_event(struct buf *out, const json_t *event, bool colour, size_t width)
{
	const char *name = json_string_value(json_object_get(event, "event"));
	const char *time = json_string_value(json_object_get(event, "time"));
	enum audit_severity severity = audit_event_severity(name ? name : "");
	_cleanup_buf_ struct buf rest = BUF_INIT(1u << 20);
	char local[AUDIT_LOCAL_TIME], shown[48];
	const char *key;
	json_t *value;

	audit_local_time(time, local);
	str_escape_into(shown, sizeof(shown), name ? name : "?", name ? strlen(name) : 1);
	json_object_foreach((json_t *)(uintptr_t)event, key, value)
	{
		if (skipped(key))
			continue;
		if (rest.len)
			buf_adds(&rest, " ");
		str_escape(&rest, key, strlen(key));
		buf_adds(&rest, "=");
		add_value(&rest, value);
		if (width && rest.len > width)
			break;
	}
	size_t used = 8 + 4 + 2 + 7 + 2 + 18 + 2, keep = rest.len;
	const char *dots = "";

	if (width > used + 10 && keep > width - used) {
		keep = str_utf8_prefix(rest.data, width - used - 3);
		dots = "...";
	}
	return buf_addf(
		out, "%s%.4s  %s%-7s%s  %-18s  %.*s%s", strlen(local) > 11 ? local + 11 : local,
		time && strlen(time) > 23 && time[19] == '.' && strspn(time + 20, "0123456789") >= 3
			? time + 19
			: "    ",
		audit_colour_on(severity, colour), audit_severity_name(severity),
		audit_colour_off(colour), shown, (int)keep, rest.data ? rest.data : "", dots);
}

int audit_parse_since(const char *text, char out[static 40])
{
	size_t n = strlen(text);
	struct timespec now;
	struct tm tm;
	uint64_t ms, days;
	char number[24];

	if (n >= 10 && n < 40 && text[4] == '-' && strspn(text, "0123456789-T:.Z") == n) {
		memcpy(out, text, n + 1);
		return 0;
	}
	if (n > 1 && n < sizeof(number) && (text[n - 1] == 'd' || text[n - 1] == 'w')) {
		memcpy(number, text, n - 1);
		number[n - 1] = '\0';
		if (num_parse_u64(number, 100000, &days) < 0)
			return -EINVAL;
		ms = days * (text[n - 1] == 'w' ? 7 : 1) * 86400000;
	} else if (num_parse_duration(text, &ms) < 0) {
		return -EINVAL;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	if (ms / 1000 > (uint64_t)now.tv_sec)
		ms = (uint64_t)now.tv_sec * 1000;
	now.tv_sec -= (time_t)(ms / 1000);
	gmtime_r(&now.tv_sec, &tm);
	strftime(out, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	return 0;
}
