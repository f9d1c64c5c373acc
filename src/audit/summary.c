/* A log in short: for the index and the head of `pale audit show`. The file may have been altered;
 * types are checked, texts bounded. */
#include "summary.h"

#include <string.h>

#include "audit/lines.h"
#include "base/str.h"

#define STAGE "audit"

static const char *string_at(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static int64_t int_at(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) ? json_integer_value(v) : -1;
}

/* argv in one line, or the first line of code. */
static char *command_of(const json_t *start)
{
	const json_t *argv = json_object_get(start, "argv"), *word;
	_cleanup_buf_ struct buf b = BUF_INIT(1024);
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)argv, i, word)
	{
		const char *w = json_string_value(word);

		if (w && ((i && buf_adds(&b, " ") < 0) || buf_add(&b, w, strnlen(w, 200)) < 0))
			break;
	}
	if (b.len == 0)
		buf_add(&b, string_at(start, "code"), strnlen(string_at(start, "code"), 200));
	/* A word cut in mid-character stays out of SQLite. */
	if (b.len)
		b.data[str_utf8_prefix(b.data, b.len)] = '\0';
	return take_ptr(b.data);
}

static void count(struct run_summary *r, const char *name, uint64_t n)
{
	for (size_t i = 0; i < r->nevents; i++)
		if (strcmp(r->events[i].name, name) == 0) {
			r->events[i].n += n;
			return;
		}
	if (r->nevents == ARRAY_SIZE(r->events))
		return;
	snprintf(r->events[r->nevents].name, sizeof(r->events[0].name), "%s", name);
	r->events[r->nevents++].n = n;
}

static void add(struct run_summary *r, const struct chain_line *line)
{
	const json_t *o = line->object;
	const struct audit_event *e = audit_event_find(line->event);
	int64_t times = int_at(o, "count");
	uint64_t n = times > 0 && times < INT32_MAX ? (uint64_t)times : 1;

	count(r, line->event, n);
	/* What a person did not take over later is no attempt of the run's. */
	if (strcmp(line->event, "apply.refused") != 0)
		r->by_severity[e ? e->severity : AUDIT_INFO] += n;
	if (strcmp(line->event, "box.start") == 0) {
		snprintf(r->policy, sizeof(r->policy), "%s", string_at(o, "policy_name"));
		snprintf(r->user, sizeof(r->user), "%s", string_at(o, "user"));
		free(r->command);
		r->command = command_of(o);
	} else if (strcmp(line->event, "session.ready") == 0 ||
		   strcmp(line->event, "session.claimed") == 0) {
		const char *name = string_at(o, "name");

		if (*name && strlen(name) < sizeof(r->session))
			snprintf(r->session, sizeof(r->session), "%s", name);
	} else if (strcmp(line->event, "box.end") == 0) {
		const json_t *usage = json_object_get(o, "usage");

		snprintf(r->ended, sizeof(r->ended), "%s", line->time);
		snprintf(r->outcome, sizeof(r->outcome), "%s", string_at(o, "outcome"));
		if (!r->outcome[0])
			snprintf(r->outcome, sizeof(r->outcome), "ended");
		r->status = int_at(o, "status");
		r->wall_ms = int_at(usage, "wall_ms");
	} else if (strcmp(line->event, "workspace.captured") == 0) {
		r->unapplied |= int_at(o, "added") > 0 || int_at(o, "modified") > 0 ||
				int_at(o, "deleted") > 0 || int_at(o, "other") > 0;
	} else if (strcmp(line->event, "discard.done") == 0 ||
		   (strcmp(line->event, "apply.done") == 0 && int_at(o, "remaining") == 0)) {
		r->unapplied = false;
	}
}

int run_summarize(int log_fd, struct run_summary *ret, struct pale_err *err)
{
	_cleanup_log_lines_ struct log_lines lines = LOG_LINES(log_fd);
	const char *text;
	size_t len;
	int r;

	*ret = (struct run_summary){.status = -1, .wall_ms = -1};
	while ((r = log_next(&lines, &text, &len)) > 0) {
		_cleanup_line_ struct chain_line line = {0};
		const char *why = chain_parse(text, len, &line);

		if (why) {
			snprintf(ret->damaged, sizeof(ret->damaged), "line %lu: %s", ret->lines + 1,
				 why);
			break;
		}
		if (ret->lines++ == 0)
			snprintf(ret->started, sizeof(ret->started), "%s", line.time);
		add(ret, &line);
	}
	if (r == -ENOMEM)
		return err_nomem(err, STAGE);
	if (r < 0)
		snprintf(ret->damaged, sizeof(ret->damaged), "%s",
			 r == -ENOSPC ? "a line is too long" : strerror(-r));
	return 0;
}

void run_summary_done(struct run_summary *r)
{
	free(r->command);
	r->command = NULL;
}
