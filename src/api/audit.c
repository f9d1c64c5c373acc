/* The audit log for the library's callers: see pale.h. Runs in the caller's process with its
 * privileges; logs are hostile, and are read by src/audit. */
#include "api.h"

#include <string.h>

#include "audit/events.h"
#include "audit/export.h"
#include "audit/follow.h"
#include "audit/format.h"
#include "audit/index.h"
#include "audit/prune.h"
#include "audit/report.h"
#include "audit/show.h"
#include "audit/state.h"
#include "audit/ulid.h"
#include "audit/verify.h"
#include "base/str.h"
#include "supervise/session_name.h"
#include "supervise/supervise.h"

#define STAGE "audit"

_Static_assert(PALE_ID_SIZE == AUDIT_ID_SIZE, "the size of an id");
_Static_assert((int)PALE_AUDIT_BROKEN == AUDIT_LOG_BROKEN && (int)PALE_AUDIT_LOST == AUDIT_LOG_LOST,
	       "states");
_Static_assert((int)PALE_ERROR == AUDIT_ERROR && (int)PALE_LIMIT == AUDIT_LIMIT, "severities");

int pale_audit_recover(struct pale_err *err)
{
	NEED_ERR(err);
	return supervise_recover(err);
}

static int take_id(void *arg, const struct audit_row *row)
{
	snprintf(arg, AUDIT_ID_SIZE, "%s", row->id);
	return 1;
}

/* The session of that name, also one that has ended: the last. 1: there is none. */
static int find_session(const char *name, char ret[static AUDIT_ID_SIZE], struct pale_err *err)
{
	const struct audit_filter filter = {.session = name, .limit = 1};
	struct audit_index *ix = NULL;
	int r = audit_index_open(false, &ix, err);

	if (r == 0)
		r = audit_index_query(ix, &filter, take_id, ret, err);
	audit_index_free(ix);
	return r < 0 ? r : !r;
}

int pale_audit_find(const char *ref, char ret[PALE_ID_SIZE], struct pale_err *err)
{
	NEED_ERR(err);
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	bool name = session_name_valid(ref);
	char id[AUDIT_ID_SIZE];
	struct pale_err ignored;
	int r;

	/* A name that lives comes first, as for the commands of sessions. */
	if (name && audit_state_open(&s, &ignored) == 0 &&
	    session_name_find(&s, ref, id, &ignored) == 0 && audit_find(id, ret, &ignored) == 0)
		return 0;
	r = audit_find(ref, ret, err);
	if (r < 0 && name && (err->code == PALE_E_NOTFOUND || err->code == PALE_E_USAGE) &&
	    find_session(ref, ret, &ignored) == 0) {
		*err = (struct pale_err){0};
		return 0;
	}
	return r;
}

static int parse_since(const char *text, char out[static 40], struct pale_err *err)
{
	if (audit_parse_since(text, out) == 0)
		return 0;
	return err_set(err, PALE_E_USAGE, STAGE, 0, "%s is not a time; write 1h, 30d or 2026-01-31",
		       QUOTED(text));
}

struct list {
	int (*fn)(void *arg, const struct pale_audit_run *run);
	void *arg;
	bool told; /* a row was passed on */
};

static int list_one(void *arg, const struct audit_row *row)
{
	struct list *l = arg;
	const struct pale_audit_run run = {
		.id = row->id,
		.started = row->started,
		.ended = row->ended,
		.outcome = row->outcome,
		.command = row->command,
		.policy = row->policy,
		.user = row->user,
		.damaged = row->damaged,
		.status = row->status,
		.wall_ms = row->wall_ms,
		.blocked = row->blocked,
		.limits = row->limits,
		.errors = row->errors,
		.lines = row->lines,
		.bytes = row->bytes,
		.unapplied = row->unapplied,
		.live = row->live,
		.lost = row->lost,
		.session = row->session,
	};

	l->told = true;
	return l->fn(l->arg, &run);
}

int pale_audit_list(const struct pale_audit_filter *filter,
		    int (*fn)(void *arg, const struct pale_audit_run *run), void *arg,
		    struct pale_err *err)
{
	NEED_ERR(err);
	struct pale_audit_filter f = {0};
	struct audit_filter inner = {0};
	struct audit_index *ix = NULL;
	struct list l = {.fn = fn, .arg = arg};
	char since[40];
	int r = api_take(&f, sizeof(f), filter, "struct pale_audit_filter", err);

	if (r == 0 && f.since)
		r = parse_since(f.since, since, err);
	if (r == 0 && f.event && !audit_event_find(f.event))
		r = err_set(err, PALE_E_USAGE, STAGE, 0,
			    "no event is called %s; `pale audit events` lists them",
			    QUOTED(f.event));
	if (r == 0)
		r = audit_index_open(false, &ix, err);
	if (r < 0)
		return r;
	inner.since = f.since ? since : NULL;
	inner.outcome = f.outcome;
	inner.event = f.event;
	inner.limit = f.limit;
	r = audit_index_query(ix, &inner, list_one, &l, err);
	/* Damage within the file shows only when it is read. */
	if (r == -PALE_E_AUDIT && !l.told) {
		audit_index_free(ix);
		ix = NULL;
		r = audit_index_open(true, &ix, err);
		if (r == 0)
			r = audit_index_query(ix, &inner, list_one, &l, err);
	}
	audit_index_free(ix);
	return r;
}

int pale_audit_ids(const char *since, int (*fn)(void *arg, const char *id), void *arg,
		   struct pale_err *err)
{
	NEED_ERR(err);
	_cleanup_state_ struct audit_state s = AUDIT_STATE_NONE;
	_cleanup_free_ char(*ids)[AUDIT_ID_SIZE] = NULL;
	char from[40] = "", at[40];
	size_t n = 0;
	int r = since ? parse_since(since, from, err) : 0;

	if (r == 0)
		r = audit_state_open(&s, err);
	if (r == 0)
		r = audit_state_list(&s, &ids, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (!since || strcmp(ulid_time(ids[i], at), from) >= 0)
			r = fn(arg, ids[i]);
	return r;
}

int pale_audit_show(const char *id, FILE *out, unsigned flags, size_t width, struct pale_err *err)
{
	NEED_ERR(err);
	const struct audit_show how = {
		.events = flags & PALE_SHOW_EVENTS,
		.blocked = flags & PALE_SHOW_BLOCKED,
		.json = flags & PALE_SHOW_JSON,
		.colour = flags & PALE_PRINT_COLOUR,
		.width = width,
	};
	uint64_t shown = 0;
	int r = audit_show(id, &how, out, &shown, err);

	return r < 0 ? r : shown < INT32_MAX ? (int)shown : INT32_MAX;
}

struct follower {
	int (*fn)(void *arg, const char *id, const char *json);
	void *arg;
};

static int follow_one(void *arg, const char *id, const json_t *event)
{
	const struct follower *f = arg;
	_cleanup_free_ char *text =
		event ? json_dumps(event, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	if (event && !text)
		return -ENOMEM;
	return f->fn(f->arg, id, text);
}

int pale_audit_follow(const char *id, bool on,
		      int (*fn)(void *arg, const char *id, const char *json), void *arg,
		      struct pale_err *err)
{
	NEED_ERR(err);
	struct follower f = {fn, arg};

	return audit_follow(id, on, 10, follow_one, &f, err);
}

int pale_audit_tail(const struct pale_audit_tail *how,
		    int (*fn)(void *arg, const char *id, const char *json), void *arg,
		    struct pale_err *err)
{
	NEED_ERR(err);
	struct follower f = {fn, arg};
	struct pale_audit_tail h = {0};
	int r = api_take(&h, sizeof(h), how, "struct pale_audit_tail", err);

	return r < 0 ? r : audit_follow(h.id, !h.id || h.on, h.last, follow_one, &f, err);
}

int pale_audit_print(const char *json, FILE *out, unsigned flags, size_t width,
		     struct pale_err *err)
{
	NEED_ERR(err);
	_cleanup_buf_ struct buf b = BUF_INIT(2u << 20);
	json_t *event = json_loads(json, 0, NULL);
	int r;

	if (!event)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "not an event");
	r = audit_format_event(&b, event, flags & PALE_PRINT_COLOUR, width);
	json_decref(event);
	if (r < 0)
		return err_nomem(err, STAGE);
	fprintf(out, "%s\n", b.data);
	return 0;
}

int pale_audit_export(const char *id, bool otlp, FILE *out, struct pale_err *err)
{
	NEED_ERR(err);
	return otlp ? audit_export_otlp(out, id, err) : audit_export_jsonl(out, id, err);
}

int pale_audit_report(const char *id, FILE *out, struct pale_err *err)
{
	NEED_ERR(err);
	return audit_report_html(out, id, err);
}

int pale_audit_verify(const char *id, const char *head, struct pale_audit_verdict *ret,
		      struct pale_err *err)
{
	NEED_ERR(err);
	struct audit_verdict v;
	int r = audit_verify(id, head, &v, err);

	if (r < 0)
		return r;
	*ret = (struct pale_audit_verdict){
		.state = (enum pale_audit_state)v.state,
		.lines = v.lines,
		.head_line = v.head_line,
		.bad_line = v.bad_line,
	};
	snprintf(ret->what, sizeof(ret->what), "%s", v.what);
	snprintf(ret->head, sizeof(ret->head), "%s", v.head);
	return 0;
}

int pale_audit_prune(const struct pale_audit_prune *how, struct pale_audit_pruned *ret,
		     struct pale_err *err)
{
	NEED_ERR(err);
	struct pale_audit_prune h = {.max_bytes = AUDIT_MAX_BYTES};
	struct audit_prune inner = {0};
	struct audit_pruned done;
	char before[40];
	int r = api_take(&h, sizeof(h), how, "struct pale_audit_prune", err);

	if (r == 0 && h.older)
		r = parse_since(h.older, before, err);
	if (r < 0)
		return r;
	inner.max_bytes = h.max_bytes;
	inner.before = h.older ? before : NULL;
	inner.dry_run = h.dry_run;
	inner.force = h.force;
	inner.each = h.each;
	inner.arg = h.arg;
	r = audit_prune(&inner, &done, err);
	if (r < 0)
		return r;
	*ret = (struct pale_audit_pruned){
		.runs = done.runs,
		.bytes = done.bytes,
		.kept_runs = done.kept_runs,
		.kept_bytes = done.kept_bytes,
		.unapplied = done.unapplied,
		.live = done.live,
	};
	snprintf(ret->path, sizeof(ret->path), "%s", done.path);
	return r;
}

void pale_audit_prune_daily(void)
{
	audit_prune_daily();
}

int pale_audit_reindex(struct pale_err *err)
{
	NEED_ERR(err);
	struct audit_index *ix = NULL;
	int r = audit_index_open(true, &ix, err);

	audit_index_free(ix);
	return r;
}

bool pale_audit_event(size_t index, struct pale_audit_event *ret)
{
	const struct audit_event *e = audit_events;

	while (e->name && index-- > 0)
		e++;
	if (!e->name)
		return false;
	*ret = (struct pale_audit_event){
		.name = e->name,
		.stage = e->stage,
		.severity_name = audit_severity_name(e->severity),
		.doc = e->doc,
		.severity = (enum pale_severity)e->severity,
	};
	return true;
}

int pale_audit_docs(char **ret, struct pale_err *err)
{
	NEED_ERR(err);
	_cleanup_buf_ struct buf b = BUF_INIT(1u << 20);

	if (audit_events_markdown(&b) < 0)
		return err_nomem(err, STAGE);
	*ret = take_ptr(b.data);
	return 0;
}
