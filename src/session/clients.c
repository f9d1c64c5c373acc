/* Who comes to a session through the supervisor's door: each request, and those who wait for an
 * answer to one: see session.h. In the supervisor; clients are the box's owner, and each is
 * answered once, or forgotten. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "session/session_impl.h"

#define STAGE	     "session"
#define QUEUE_MAX    256	/* executions that wait */
#define ANSWER_BYTES (1u << 20) /* of events in one answer, about */

/* Who waits for an execution: for something new, or, after an interrupt, for its end. */
struct waiter {
	TAILQ_ENTRY(waiter) entry;
	struct session *session;
	void *client;
	uint32_t id;
	uint64_t from;
	bool whole;	/* session.exec: until it has ended */
	bool interrupt; /* session.interrupt */
	struct event *timer;
};

static const char *const state_names[] = {"queued", "running", "done"};

/* ---- who waits ---- */

static void waiter_free(struct waiter *w)
{
	TAILQ_REMOVE(&w->session->waiters, w, entry);
	if (w->timer)
		event_free(w->timer);
	free(w);
}

static int view(struct session *s, struct execution *x, uint64_t from, json_t **ret,
		struct pale_err *err)
{
	json_t *events = json_array(), *o;
	int more = events ? execution_read(x, &from, ANSWER_BYTES, events, err)
			  : err_nomem(err, STAGE);

	(void)s;
	if (more < 0) {
		json_decref(events);
		return more;
	}
	o = json_pack("{s:I, s:s, s:o, s:I, s:b, s:I}", "execution", (json_int_t)x->id, "state",
		      state_names[x->state], "events", events, "next", (json_int_t)from, "more",
		      more, "omitted_bytes", (json_int_t)x->omitted_bytes);
	if (o && x->result && !more)
		json_object_set(o, "result", x->result);
	*ret = o;
	return o ? 0 : err_nomem(err, STAGE);
}

static json_t *interrupted(const struct session *s, const struct execution *x)
{
	const char *how = "pending";

	(void)s;
	if (x->state == EXECUTION_DONE) {
		how = json_string_value(json_object_get(x->result, "how"));
		if (!how)
			how = "none";
	}
	return json_pack("{s:I, s:b, s:s, s:O?}", "execution", (json_int_t)x->id, "interrupted",
			 x->state == EXECUTION_DONE, "how", how, "result", x->result);
}

static void answer(struct session *s, void *client, json_t *result, const struct pale_err *err)
{
	s->config.ops->answer(client, result, err);
}

/* Tells it what there is, and is done with it. */
static void waiter_answer(struct waiter *w)
{
	struct session *s = w->session;
	struct execution *x = session_find(s, w->id);
	struct pale_err err = {0};
	json_t *result = NULL;
	void *client = w->client;

	if (!x)
		err_set(&err, PALE_E_NOTFOUND, STAGE, 0, "the execution is forgotten");
	else if (w->interrupt)
		result = interrupted(s, x);
	else
		(void)!view(s, x, w->from, &result, &err);
	if (!result && err.code == PALE_OK)
		err_nomem(&err, STAGE);
	waiter_free(w);
	answer(s, client, result, &err);
}

static void on_waited(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	waiter_answer(arg);
}

static int wait_for(struct session *s, const struct waiter *what, uint64_t wait_ms,
		    struct pale_err *err)
{
	struct waiter *w = malloc(sizeof(*w));

	if (!w)
		return err_nomem(err, STAGE);
	*w = *what;
	w->session = s;
	TAILQ_INSERT_TAIL(&s->waiters, w, entry);
	w->timer = event_new(s->config.base, -1, 0, on_waited, w);
	if (!w->timer) {
		waiter_free(w);
		return err_nomem(err, STAGE);
	}
	session_timer(w->timer, wait_ms * 1000);
	return SESSION_LATER;
}

/* Something has come, or ended. */
void session_on_notify(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct waiter *w, *next;

	(void)fd;
	(void)what;
	for (w = TAILQ_FIRST(&s->waiters); w; w = next) {
		struct execution *x = session_find(s, w->id);

		next = TAILQ_NEXT(w, entry);
		if (!x || x->state == EXECUTION_DONE ||
		    (!w->whole && !w->interrupt && w->from < x->next))
			waiter_answer(w);
	}
}

void session_forget(struct session *s, void *client)
{
	struct waiter *w, *next;

	for (w = TAILQ_FIRST(&s->waiters); w; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->client == client)
			waiter_free(w);
	}
	if (s->request_client == client)
		s->request_client = NULL;
	session_freeze_forget(s, client);
}

void session_not_ended(struct session *s, uint32_t id)
{
	struct waiter *w, *next;

	for (w = TAILQ_FIRST(&s->waiters); w; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->interrupt && w->id == id)
			waiter_answer(w);
	}
}

void session_answer_all(struct session *s)
{
	struct waiter *w;

	while ((w = TAILQ_FIRST(&s->waiters)))
		waiter_answer(w);
}

void session_forget_all(struct session *s)
{
	struct waiter *w;

	while ((w = TAILQ_FIRST(&s->waiters)))
		waiter_free(w);
}

/* ---- from the door ---- */

int session_check_alive(const struct session *s, struct pale_err *err)
{
	if (s->dead)
		return err_set(err, PALE_E_CONFLICT, STAGE, 0, "the box has ended");
	return 0;
}

int session_exec(struct session *s, const struct session_exec *q, void *client, json_t **ret,
		 struct pale_err *err)
{
	struct execution *x;
	int r = session_check_alive(s, err);

	if (r < 0)
		return r;
	if (s->nqueued >= QUEUE_MAX)
		return err_set(err, PALE_E_CONFLICT, STAGE, 0, "%d executions are waiting already",
			       QUEUE_MAX);
	if (q->len > KERNEL_SEND_MAX)
		return err_set(err, PALE_E_USAGE, STAGE, 0, "the code is longer than %u MiB",
			       KERNEL_SEND_MAX >> 20);
	x = execution_new(++s->last_id, s->config.output_bytes / 2);
	if (x)
		x->code = malloc(q->len + 1);
	if (!x || !x->code) {
		execution_free(x);
		return err_nomem(err, STAGE);
	}
	memcpy(x->code, q->code, q->len);
	x->code[q->len] = '\0';
	x->code_len = q->len;
	x->timeout_ms = q->timeout_ms ? q->timeout_ms : s->config.wall_ms;
	x->rollback = q->rollback < 0 ? s->config.rollback : q->rollback;
	x->queued_us = clock_mono_us();
	TAILQ_INSERT_TAIL(&s->executions, x, entry);
	s->nqueued++;
	session_touch(s);
	session_start_next(s);
	if (!q->wait_ms)
		return view(s, x, 0, ret, err);
	return wait_for(s, &(struct waiter){.client = client, .id = x->id, .whole = true},
			q->wait_ms, err);
}

int session_output(struct session *s, uint32_t id, uint64_t from, uint64_t wait_ms, void *client,
		   json_t **ret, struct pale_err *err)
{
	struct execution *x = session_find(s, id);

	if (!x)
		return err_set(err, PALE_E_NOTFOUND, STAGE, 0,
			       id ? "there is no execution %u"
				  : "nothing was executed in this session yet",
			       id);
	session_touch(s);
	if (!wait_ms || x->state == EXECUTION_DONE || from < x->next)
		return view(s, x, from, ret, err);
	return wait_for(s, &(struct waiter){.client = client, .id = x->id, .from = from}, wait_ms,
			err);
}

int session_interrupt(struct session *s, uint32_t id, int64_t grace_ms, enum session_escalate how,
		      uint64_t wait_ms, void *client, json_t **ret, struct pale_err *err)
{
	struct execution *x = id ? session_find(s, id) : session_current(s);
	int r = session_check_alive(s, err);

	if (r < 0)
		return r;
	session_touch(s);
	if (!x && !id) {
		*ret = json_pack("{s:n, s:b, s:s}", "execution", "interrupted", 0, "how", "none");
		return *ret ? 0 : err_nomem(err, STAGE);
	}
	if (!x)
		return err_set(err, PALE_E_NOTFOUND, STAGE, 0, "there is no execution %u", id);
	if (x->state == EXECUTION_QUEUED) {
		/* It never began. */
		x->state = EXECUTION_DONE;
		s->nqueued--;
		x->result = json_pack("{s:I, s:s, s:n, s:s}", "execution", (json_int_t)x->id,
				      "outcome", "interrupted", "how", "state", "kept");
		session_shorten(x);
		session_notify(s);
	} else if (x == s->running) {
		if (s->frozen)
			return err_set(err, PALE_E_CONFLICT, STAGE, 0,
				       "the session is frozen: thaw it first");
		session_end_running(s, CAUSE_INTERRUPT, how,
				    grace_ms < 0 ? s->config.grace_ms : (uint64_t)grace_ms);
	}
	if (wait_ms && x->state != EXECUTION_DONE)
		return wait_for(s,
				&(struct waiter){.client = client, .id = x->id, .interrupt = true},
				wait_ms, err);
	*ret = interrupted(s, x);
	return *ret ? 0 : err_nomem(err, STAGE);
}

/* A request of the kernel, while nothing runs. */
static int ask(struct session *s, uint8_t kind, const char *code, size_t len, int32_t cursor,
	       void *client, struct pale_err *err)
{
	int r = session_check_alive(s, err);

	if (r < 0)
		return r;
	session_touch(s);
	if (!s->ready)
		return err_set(err, PALE_E_CONFLICT, STAGE, 0, "the session is still starting");
	if (s->frozen)
		return err_set(err, PALE_E_CONFLICT, STAGE, 0,
			       "the session is frozen: thaw it first");
	if (s->running || s->request)
		return err_set(err, PALE_E_CONFLICT, STAGE, 0,
			       "the session is busy: wait for what runs, or interrupt it");
	s->request = kind;
	s->request_id = ++s->last_request | 0x80000000u;
	s->request_client = client;
	clock_start(s, &s->grace, SESSION_BACK_MS * 1000);
	r = kernel_send(s->kernel,
			&(struct frame){.kind = kind,
					.id = s->request_id,
					.value = cursor,
					.data = code,
					.data_len = len},
			err);
	if (r < 0) {
		s->request = 0;
		s->request_client = NULL;
		clock_stop(&s->grace);
		return r;
	}
	return SESSION_LATER;
}

int session_undo(struct session *s, void *client, json_t **ret, struct pale_err *err)
{
	(void)ret;
	if (!s->dead && !s->running && !s->undoable)
		return err_set(err, PALE_E_CONFLICT, STAGE, 0,
			       "the last execution cannot be undone: %s",
			       s->not_armed[0] ? s->not_armed : "there was none");
	return ask(s, FRAME_UNDO, NULL, 0, 0, client, err);
}

int session_restart(struct session *s, void *client, json_t **ret, struct pale_err *err)
{
	(void)ret;
	return ask(s, FRAME_RESTART, NULL, 0, 0, client, err);
}

int session_ask(struct session *s, bool inspect, const char *code, size_t len, uint32_t cursor,
		void *client, json_t **ret, struct pale_err *err)
{
	(void)ret;
	return ask(s, inspect ? FRAME_INSPECT : FRAME_COMPLETE, code, len, (int32_t)cursor, client,
		   err);
}

int session_input(struct session *s, uint32_t id, const char *text, size_t len, bool eof,
		  json_t **ret, struct pale_err *err)
{
	int r = session_check_alive(s, err);

	if (r < 0)
		return r;
	session_touch(s);
	if (!session_current(s) || (id && id != s->running->id))
		return err_set(err, PALE_E_CONFLICT, STAGE, 0, "it does not run");
	r = kernel_send(s->kernel,
			&(struct frame){.kind = FRAME_INPUT,
					.id = s->running->id,
					.value = eof ? 1 : 0,
					.data = text,
					.data_len = len},
			err);
	if (r < 0)
		return r;
	*ret = json_object();
	return *ret ? 0 : err_nomem(err, STAGE);
}

json_t *session_show(struct session *s, bool all)
{
	json_t *history = all ? json_array() : NULL;
	struct execution *x;
	size_t n = 0;
	uint64_t now = clock_mono_us();

	TAILQ_FOREACH(x, &s->executions, entry)
	n++;
	TAILQ_FOREACH(x, &s->executions, entry)
	{
		const char *line;
		size_t len;
		json_t *o;

		if (n-- > 100 || !all)
			continue;
		line = session_first_line(x, &len);
		o = json_pack("{s:I, s:s, s:o, s:I}", "execution", (json_int_t)x->id, "state",
			      state_names[x->state], "code", execution_text(line, len), "next",
			      (json_int_t)x->next);
		json_object_set(o, "outcome", json_object_get(x->result, "outcome"));
		json_object_set(o, "wall_ms", json_object_get(x->result, "wall_ms"));
		json_array_append_new(history, o);
	}
	return json_pack(
		"{s:s, s:s?, s:s, s:s, s:s, s:I, s:o, s:I, s:{s:b, s:b, s:s?}, s:I, s:I, s:b, "
		"s:o*}",
		"kernel", s->config.kernel, "name", s->config.name, "language", s->language,
		"banner", s->banner, "state",
		s->dead		     ? "ended"
		: s->frozen	     ? "frozen"
		: !s->ready	     ? "starting"
		: session_current(s) ? "busy"
				     : "idle",
		"executions", (json_int_t)s->last_id, "running",
		session_current(s) ? json_integer((json_int_t)s->running->id) : json_null(),
		"queued", (json_int_t)s->nqueued, "rollback", "wanted", s->config.rollback, "undo",
		s->undoable != 0, "why", s->undoable || !s->not_armed[0] ? NULL : s->not_armed,
		"idle_ms", s->running ? (json_int_t)0 : (json_int_t)((now - s->used_us) / 1000),
		"idle_limit_ms", (json_int_t)s->config.idle_ms, "held", s->config.held, "history",
		history);
}
