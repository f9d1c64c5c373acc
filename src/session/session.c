/* A session: see session.h. In the supervisor, in its event loop; nothing here waits.
 *
 * Hostile: what the kernel says (kernel.c bounds it) and prints. It may say anything in any order:
 * what does not fit is passed over, and nothing of it decides more than how its own executions
 * look. Clients are the box's owner; each is answered once, or forgotten.
 *
 * The kernel runs one thing at a time. An execution is under way from EXECUTE to DONE, or to BACK
 * if what ran it died; undo, restart, completion and inspection are requests, one at a time, while
 * none is. A process that has to go gets a SIGINT, after a grace a SIGKILL, and a kernel that then
 * does not come back within BACK_MS ends the box. */
#include "session/session_impl.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "base/str.h"
#include "session/kernel.h"

#define STAGE	     "session"
#define BACK_MS	     5000	  /* for the kernel to come back after a SIGKILL */
#define QUEUE_MAX    256	  /* executions that wait */
#define KEEP	     128	  /* executions that are remembered with what they printed */
#define KEEP_BYTES   (128u << 20) /* of it, together */
#define REMEMBER     4096	  /* and that are remembered at all */
#define ANSWER_BYTES (1u << 20)	  /* of events in one answer, about */
#define CODE_LINE    200
#define BUSY_US	     20000 /* of processor time between two looks: somebody works in the box */

static const char *const cause_outcomes[] = {NULL,  "interrupted", "timeout",
					     "cpu", "output",	   "memory"};

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

static void warmed_up(struct session *s);

static const char *const state_names[] = {"queued", "running", "done"};

static void notify(struct session *s)
{
	/* Not now: what else has come of the same packet or pipe goes along. */
	event_active(s->notify, EV_TIMEOUT, 1);
}

static void fail(struct session *s, const struct pale_err *err)
{
	s->config.ops->fail(s->config.arg, err);
}

void session_timer(struct event *e, uint64_t us)
{
	struct timeval tv = {.tv_sec = (time_t)(us / 1000000),
			     .tv_usec = (suseconds_t)(us % 1000000)};

	event_add(e, &tv);
}

void session_touch(struct session *s)
{
	s->used_us = clock_mono_us();
}

static struct execution *find(struct session *s, uint32_t id)
{
	struct execution *x;

	if (!id)
		return TAILQ_LAST(&s->executions, execution_list);
	TAILQ_FOREACH_REVERSE(x, &s->executions, execution_list, entry)
	if (x->id == id)
		return x;
	return NULL;
}

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
	struct execution *x = find(s, w->id);
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
static void on_notify(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct waiter *w, *next;

	(void)fd;
	(void)what;
	for (w = TAILQ_FIRST(&s->waiters); w; w = next) {
		struct execution *x = find(s, w->id);

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

/* ---- executions: beginning ---- */

/* What is remembered is bounded: output goes first. */
static void forget_some(struct session *s)
{
	struct execution *x, *next;
	uint64_t bytes = 0;
	size_t n = 0;

	for (x = TAILQ_LAST(&s->executions, execution_list); x; x = next) {
		next = TAILQ_PREV(x, execution_list, entry);
		n++;
		bytes += execution_size(x);
		if (x->state != EXECUTION_DONE)
			continue;
		if (n > KEEP || bytes > KEEP_BYTES)
			execution_forget(x);
		if (n <= REMEMBER)
			continue;
		TAILQ_REMOVE(&s->executions, x, entry);
		execution_free(x);
	}
}

static void add_note(struct session *s, struct execution *x, const char *text, size_t len)
{
	struct pale_err err;

	if (execution_add(
		    x, json_pack("{s:s, s:o}", "type", "note", "text", execution_text(text, len)),
		    len, &err) < 0)
		fail(s, &err);
	notify(s);
}

void session_start_next(struct session *s)
{
	struct execution *x;
	struct pale_err err;

	if (!s->ready || s->running || s->request || s->dead || s->frozen || !s->nqueued)
		return;
	TAILQ_FOREACH(x, &s->executions, entry)
	if (x->state == EXECUTION_QUEUED)
		break;
	if (!x)
		return;
	s->nqueued--;
	s->running = x;
	s->cause = CAUSE_NONE;
	s->stage = STAGE_RUNS;
	s->escalated = false;
	x->state = EXECUTION_RUNNING;
	/* On record before it is run. */
	if (s->config.ops->log(s->config.arg, "exec.start",
			       json_pack("{s:I, s:s, s:o}", "execution", (json_int_t)x->id,
					 "kernel", s->config.kernel, "code",
					 audit_text(x->code, x->code_len, SIZE_MAX))) < 0)
		return;
	s->config.ops->begin(s->config.arg);
	if (s->note[0]) {
		add_note(s, x, s->note, strlen(s->note));
		s->note[0] = '\0';
	}
	x->started_us = clock_mono_us();
	x->cpu_us = s->cpu_base_us = s->config.ops->cpu_us(s->config.arg);
	if (x->timeout_ms)
		clock_start(s, &s->timeout, x->timeout_ms * 1000);
	if (kernel_send(s->kernel,
			&(struct frame){.kind = FRAME_EXECUTE,
					.id = x->id,
					.value = x->rollback ? FRAME_ROLLBACK : 0,
					.data = x->code,
					.data_len = x->code_len},
			&err) < 0)
		fail(s, &err);
}

/* ---- executions: their end ---- */

/* The first line of the code that has something. */
static const char *first_line(const struct execution *x, size_t *ret_len)
{
	const char *line = x->code + strspn(x->code, " \t\r\n");

	while (line > x->code && line[-1] != '\n')
		line--;
	*ret_len = strcspn(line, "\n");
	if (*ret_len > CODE_LINE)
		*ret_len = CODE_LINE;
	return line;
}

/* It is enough from now on. */
static void shorten(struct execution *x)
{
	const char *line = first_line(x, &x->code_len);

	memmove(x->code, line, x->code_len);
	x->code[x->code_len] = '\0';
}

/* how: what it took, or NULL. kept: the session's state now. */
static void finish(struct session *s, const char *outcome, const char *how, const char *kept,
		   json_t *status)
{
	struct execution *x = s->running;
	json_t *result;

	clock_stop(&s->timeout);
	clock_stop(&s->grace);
	if (!x->id) {
		json_decref(status);
		warmed_up(s);
		return;
	}
	x->ended_us = clock_mono_us();
	x->cpu_us = s->config.ops->cpu_us(s->config.arg) - s->cpu_base_us;
	result = json_pack("{s:I, s:s, s:s?, s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "execution",
			   (json_int_t)x->id, "outcome", outcome, "how", how, "state", kept,
			   "status", status ? status : json_null(), "wall_ms",
			   (json_int_t)((x->ended_us - x->started_us) / 1000), "cpu_ms",
			   (json_int_t)(x->cpu_us / 1000), "queued_ms",
			   (json_int_t)((x->started_us - x->queued_us) / 1000), "output_bytes",
			   (json_int_t)(x->output_bytes[0] + x->output_bytes[1]), "display_bytes",
			   (json_int_t)x->display_bytes);
	if (result) {
		if (x->name[0])
			json_object_set_new(result, "error", json_string(x->name));
		s->config.ops->settle(s->config.arg, result);
	}
	x->result = result;
	x->state = EXECUTION_DONE;
	if (x->why[0] && result)
		json_object_set_new(result, "not_armed", json_string(x->why));
	shorten(x);
	s->running = NULL;
	session_touch(s);
	(void)!s->config.ops->log(s->config.arg, "exec.end", json_deep_copy(result));
	forget_some(s);
	notify(s);
	session_start_next(s);
}

static void take_done(struct session *s, const struct frame *f)
{
	struct execution *x = s->running;
	json_t *status = NULL;
	const char *outcome, *how = NULL;
	char number[16];

	if (!x || f->id != x->id)
		return;
	if (f->key_len && f->key_len < sizeof(number)) {
		memcpy(number, f->key, f->key_len);
		number[f->key_len] = '\0';
		status = json_integer((json_int_t)strtol(number, NULL, 10));
	}
	switch (f->value) {
	case FRAME_OK: outcome = "ok"; break;
	case FRAME_INTERRUPTED: outcome = "interrupted"; break;
	case FRAME_ENDED: outcome = "ended"; break;
	default: outcome = "error";
	}
	if (s->cause != CAUSE_NONE && s->stage != STAGE_RUNS &&
	    (f->value == FRAME_INTERRUPTED || s->cause != CAUSE_INTERRUPT)) {
		outcome = cause_outcomes[s->cause];
		how = "signal";
	}
	if (f->value == FRAME_ENDED) {
		s->undoable = 0;
		s->ended_id = x->id;
		snprintf(s->not_armed, sizeof(s->not_armed), "the interpreter ended itself");
	} else if (x->armed) {
		s->undoable = x->id;
	} else {
		s->undoable = 0;
		snprintf(s->not_armed, sizeof(s->not_armed), "%s",
			 x->why[0] ? x->why : "it ran without rollback");
	}
	finish(s, outcome, how, f->value == FRAME_ENDED ? "fresh" : "kept", status);
}

/* What ran it is dead, and the kernel is ready again. */
static void died(struct session *s, const struct frame *f, bool held)
{
	char text[120];
	bool ours;

	if ((f->value & 0x7f) == SIGKILL && !s->escalated)
		s->config.ops->look_at_memory(s->config.arg);
	ours = s->cause != CAUSE_NONE && s->escalated;

	s->undoable = 0;
	snprintf(s->not_armed, sizeof(s->not_armed), "it was taken back already");
	if (!ours) {
		int status = f->value;

		snprintf(text, sizeof(text), "pale: the interpreter %s %d; %s",
			 status & 0x7f ? "was killed by signal" : "ended itself with status",
			 status & 0x7f ? status & 0x7f : status >> 8 & 0xff,
			 held ? "the state before this execution is back"
			      : "a fresh one took its place");
		add_note(s, s->running, text, strlen(text));
	}
	finish(s, ours ? cause_outcomes[s->cause] : "died",
	       ours ? held ? "rollback" : "restart" : NULL, held ? "held" : "fresh",
	       f->value ? json_integer(f->value & 0x7f ? 128 + (f->value & 0x7f)
						       : f->value >> 8 & 0xff)
			: NULL);
}

/* The request under way is done with. */
static void request_answer(struct session *s, json_t *result, const struct pale_err *err)
{
	void *client = s->request_client;

	s->request = 0;
	s->request_client = NULL;
	clock_stop(&s->grace);
	if (client)
		answer(s, client, result, err);
	else
		json_decref(result);
	session_start_next(s);
}

static void take_back(struct session *s, const struct frame *f)
{
	bool held = frame_key_is(f, "held");
	uint32_t undone = s->undoable;

	/* That there is a fresh interpreter after one that ended itself was said with its end; the
	 * next execution may have begun since, and waits for this one. */
	if (f->id && f->id == s->ended_id) {
		s->ended_id = 0;
		return;
	}
	if (s->running) {
		died(s, f, held);
		return;
	}
	s->undoable = 0;
	if (s->request == FRAME_UNDO && held) {
		json_t *o = json_pack("{s:I}", "undone", (json_int_t)undone);

		snprintf(s->not_armed, sizeof(s->not_armed), "it was undone already");
		(void)!s->config.ops->log(s->config.arg, "session.undone",
					  json_pack("{s:I}", "execution", (json_int_t)undone));
		request_answer(s, o, NULL);
	} else if (s->request == FRAME_RESTART) {
		snprintf(s->not_armed, sizeof(s->not_armed), "the session was restarted");
		(void)!s->config.ops->log(s->config.arg, "session.restarted", json_object());
		request_answer(s, json_pack("{s:s}", "state", "fresh"), NULL);
	} else {
		/* It died while nothing ran, by whatever it had left running. */
		snprintf(s->note, sizeof(s->note),
			 "pale: the interpreter ended between two executions; %s",
			 held ? "the state before the last one is back"
			      : "this is a fresh one: variables are gone, files are there");
		if (s->request) {
			struct pale_err err;

			err_set(&err, PALE_E_CONFLICT, STAGE, 0, "the interpreter ended meanwhile");
			request_answer(s, NULL, &err);
		}
	}
}

/* ---- ending what runs ---- */

static void kill_running(struct session *s)
{
	struct execution *x = s->running;

	s->stage = STAGE_KILLED;
	s->escalated = true;
	clock_start(s, &s->grace, BACK_MS * 1000);
	if (x->pid > 1)
		(void)!s->config.ops->signal(s->config.arg, x->pid, SIGKILL, true);
}

static void on_grace(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct pale_err err;

	(void)fd;
	(void)what;
	s->grace.runs = false;
	if (s->stage == STAGE_KILLED || s->request) {
		err_set(&err, PALE_E_SYSTEM, STAGE, 0,
			"the kernel did not come back within %d s: the box ends", BACK_MS / 1000);
		fail(s, &err);
		return;
	}
	if (!s->running || s->stage != STAGE_SIGNALLED)
		return;
	if (s->escalate == ESCALATE_RESTART ||
	    (s->escalate == ESCALATE_ROLLBACK && s->running->armed)) {
		kill_running(s);
		return;
	}
	/* It goes on; a later interrupt may ask for more. */
	s->stage = STAGE_RUNS;
	struct waiter *w, *next;

	for (w = TAILQ_FIRST(&s->waiters); w; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->interrupt && w->id == s->running->id)
			waiter_answer(w);
	}
}

/* A signal for it, and more after the grace. One that comes again while the grace is on asks for
 * as much as the stronger of the two. */
static void end_running(struct session *s, enum cause cause, enum session_escalate escalate,
			uint64_t grace_ms)
{
	if (s->stage == STAGE_KILLED)
		return;
	if (s->cause == CAUSE_NONE || cause != CAUSE_INTERRUPT)
		s->cause = cause;
	s->escalate =
		s->stage == STAGE_SIGNALLED && s->escalate > escalate ? s->escalate : escalate;
	s->stage = STAGE_SIGNALLED;
	(void)!s->config.ops->log(s->config.arg, "exec.interrupt",
				  json_pack("{s:I, s:s}", "execution", (json_int_t)s->running->id,
					    "cause", cause_outcomes[cause]));
	/* Before STARTED nobody could be told: it is, then. */
	if (s->running->pid > 1)
		(void)!s->config.ops->signal(s->config.arg, s->running->pid, SIGINT, true);
	clock_start(s, &s->grace, grace_ms * 1000);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	s->timeout.runs = false;
	if (s->running)
		end_running(s, CAUSE_TIMEOUT, ESCALATE_RESTART, s->config.grace_ms);
}

uint64_t session_cpu_left_us(const struct session *s)
{
	uint64_t max = s->config.cpu_ms * 1000, used = s->cpu_seen_us - s->cpu_base_us;

	if (!s->running || s->cause == CAUSE_CPU)
		return 0;
	return used >= max ? 1 : max - used;
}

void session_cpu(struct session *s, uint64_t cpu_us)
{
	/* What works in the box, be it in the background, is no idle session. */
	if (cpu_us > s->cpu_seen_us + BUSY_US)
		session_touch(s);
	s->cpu_seen_us = cpu_us;
	if (s->running && s->cause != CAUSE_CPU && cpu_us > s->cpu_base_us &&
	    cpu_us - s->cpu_base_us >= s->config.cpu_ms * 1000)
		end_running(s, CAUSE_CPU, ESCALATE_RESTART, s->config.grace_ms);
}

bool session_memory(struct session *s, bool killed)
{
	if (!s->running)
		return false;
	s->cause = CAUSE_MEMORY;
	s->escalate = ESCALATE_RESTART;
	/* Of what the kernel killed it may be a child only: then it goes on, and sees that itself.
	 */
	if (killed)
		s->escalated = true;
	else if (s->stage != STAGE_KILLED)
		kill_running(s);
	return true;
}

static void check_output(struct session *s)
{
	struct execution *x = s->running;

	if (s->cause != CAUSE_OUTPUT && x->output_bytes[0] + x->output_bytes[1] + x->display_bytes >
						s->config.output_total_bytes)
		end_running(s, CAUSE_OUTPUT, ESCALATE_RESTART, s->config.grace_ms);
}

/* ---- from the kernel ---- */

static void tell_ready(struct session *s)
{
	if (s->config.ops->log(s->config.arg, "session.ready",
			       json_pack("{s:s?, s:s, s:s, s:s, s:I}", "name", s->config.name,
					 "kernel", s->config.kernel, "language", s->language,
					 "banner", s->banner, "ready_us",
					 (json_int_t)(clock_mono_us() - s->made_us))) < 0)
		return;
	s->ready = true;
	s->config.ops->ready(s->config.arg);
	session_start_next(s);
}

/* Nobody's execution: not on record, its output nobody's. */
static bool warm_up(struct session *s)
{
	struct execution *x;
	struct pale_err err;

	if (!s->config.warm_up)
		return false;
	x = execution_new(0, 0);
	if (!x)
		return false;
	s->running = x;
	x->rollback = s->config.rollback;
	x->state = EXECUTION_RUNNING;
	s->config.ops->begin(s->config.arg);
	s->cpu_base_us = s->config.ops->cpu_us(s->config.arg);
	if (kernel_send(s->kernel,
			&(struct frame){.kind = FRAME_EXECUTE,
					.value = x->rollback ? FRAME_ROLLBACK : 0,
					.data = s->config.warm_up,
					.data_len = strlen(s->config.warm_up)},
			&err) < 0)
		fail(s, &err);
	return true;
}

static void warmed_up(struct session *s)
{
	execution_free(s->running);
	s->running = NULL;
	s->undoable = 0;
	s->not_armed[0] = '\0';
	tell_ready(s);
}

static void take_ready(struct session *s, const struct frame *f)
{
	if (s->ready || s->running)
		return;
	str_escape_into(s->language, sizeof(s->language), f->key, f->key_len);
	str_escape_into(s->banner, sizeof(s->banner), f->data, f->data_len);
	if (!warm_up(s))
		tell_ready(s);
}

static void take_started(struct session *s, const struct frame *f)
{
	struct execution *x = s->running;
	struct pale_err err;

	if (!x || f->id != x->id || x->pid)
		return;
	x->pid = f->value > 1 ? f->value : 0;
	x->armed = x->rollback && frame_key_is(f, "armed");
	if (x->rollback && !x->armed)
		str_escape_into(x->why, sizeof(x->why), f->data, f->data_len);
	/* Said before, not after. */
	if (execution_add(x,
			  json_pack("{s:s, s:b, s:s?}", "type", "started", "rollback", x->armed,
				    "why", x->why[0] ? x->why : NULL),
			  sizeof(x->why), &err) < 0)
		fail(s, &err);
	notify(s);
	if (s->stage == STAGE_SIGNALLED && x->pid)
		(void)!s->config.ops->signal(s->config.arg, x->pid, SIGINT, true);
}

static void take_reply(struct session *s, const struct frame *f)
{
	if ((s->request != FRAME_COMPLETE && s->request != FRAME_INSPECT) || f->id != s->request_id)
		return;
	request_answer(s,
		       json_pack("{s:o, s:o}", "mime", execution_text(f->key, f->key_len), "data",
				 execution_text(f->data, f->data_len)),
		       NULL);
}

static void take_refused(struct session *s, const struct frame *f)
{
	struct pale_err err;
	char text[200];

	if (!s->request || f->id != s->request_id)
		return;
	err_set(&err, PALE_E_CONFLICT, STAGE, 0, "%s",
		str_escape_into(text, sizeof(text), f->data, f->data_len));
	request_answer(s, NULL, &err);
}

static void take_input_wanted(struct session *s, const struct frame *f)
{
	struct pale_err err;

	if (!s->running || f->id != s->running->id)
		return;
	if (execution_add(s->running,
			  json_pack("{s:s, s:o, s:b}", "type", "input", "prompt",
				    execution_text(f->data, f->data_len), "password",
				    f->value == 1),
			  f->data_len, &err) < 0)
		fail(s, &err);
	notify(s);
}

static void on_message(void *arg, const struct frame *f)
{
	struct session *s = arg;
	struct pale_err err;
	struct execution *x = s->running;
	int r = 0;

	if (s->dead)
		return;
	switch ((enum frame_kind)f->kind) {
	case FRAME_READY: take_ready(s, f); return;
	case FRAME_STARTED: take_started(s, f); return;
	case FRAME_DONE: take_done(s, f); return;
	case FRAME_BACK: take_back(s, f); return;
	case FRAME_REPLY: take_reply(s, f); return;
	case FRAME_REFUSED: take_refused(s, f); return;
	case FRAME_INPUT_WANTED: take_input_wanted(s, f); return;
	case FRAME_DATA:
	case FRAME_ERROR:
	case FRAME_NOTE: break;
	default: return;
	}
	/* A late one, of what still runs in the background, belongs to the last execution. */
	if (!x)
		x = find(s, f->id);
	if (!x || x->id != f->id)
		return;
	if (f->kind == FRAME_DATA)
		r = execution_show(x, f, &err);
	else if (f->kind == FRAME_ERROR)
		r = execution_fail(x, f, &err);
	else
		add_note(s, x, f->data, f->data_len < 4096 ? f->data_len : 4096);
	if (f->kind == FRAME_NOTE)
		x->display_bytes += f->data_len;
	if (r < 0)
		fail(s, &err);
	else if (s->running)
		check_output(s);
	notify(s);
}

static void on_kernel_ended(void *arg, const char *why)
{
	struct session *s = arg;
	struct pale_err err;

	/* Its box ends with it: the first process is the kernel's. */
	if (!why)
		return;
	err_set(&err, PALE_E_SYSTEM, STAGE, 0, "%s", why);
	fail(s, &err);
}

static void on_before(void *arg)
{
	struct session *s = arg;

	s->config.ops->drain(s->config.arg);
}

void session_before_print(struct session *s)
{
	kernel_drain(s->kernel);
}

void session_print(struct session *s, enum execution_stream stream, const char *data, size_t len)
{
	struct execution *x = s->running ? s->running : find(s, 0);
	struct pale_err err;

	/* Before the first execution: nobody asked for it. */
	if (!x || x->state == EXECUTION_QUEUED)
		return;
	if (execution_print(x, stream, data, len, &err) < 0)
		fail(s, &err);
	else if (x == s->running)
		check_output(s);
	notify(s);
}

void session_ended(struct session *s, const char *outcome)
{
	struct execution *x;
	struct waiter *w;
	struct pale_err err;

	if (s->dead)
		return;
	s->dead = true;
	session_freeze_ended(s);
	event_del(s->idle);
	event_del(s->lifetime);
	TAILQ_FOREACH(x, &s->executions, entry)
	if (x->state == EXECUTION_QUEUED) {
		x->state = EXECUTION_DONE;
		x->result = json_pack("{s:I, s:s, s:n, s:s}", "execution", (json_int_t)x->id,
				      "outcome", "lost", "how", "state", "gone");
		shorten(x);
	}
	s->nqueued = 0;
	if (s->running)
		finish(s, outcome, "destroyed", "gone", NULL);
	if (s->request) {
		err_set(&err, PALE_E_CONFLICT, STAGE, 0, "the box has ended");
		request_answer(s, NULL, &err);
	}
	while ((w = TAILQ_FIRST(&s->waiters)))
		waiter_answer(w);
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
	struct execution *x = find(s, id);

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
	struct execution *x = id ? find(s, id) : s->running;
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
		shorten(x);
		notify(s);
	} else if (x == s->running) {
		if (s->frozen)
			return err_set(err, PALE_E_CONFLICT, STAGE, 0,
				       "the session is frozen: thaw it first");
		end_running(s, CAUSE_INTERRUPT, how,
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
	clock_start(s, &s->grace, BACK_MS * 1000);
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
	if (!s->running || (id && id != s->running->id))
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
		line = first_line(x, &len);
		o = json_pack("{s:I, s:s, s:o, s:I}", "execution", (json_int_t)x->id, "state",
			      state_names[x->state], "code", execution_text(line, len), "next",
			      (json_int_t)x->next);
		json_object_set(o, "outcome", json_object_get(x->result, "outcome"));
		json_object_set(o, "wall_ms", json_object_get(x->result, "wall_ms"));
		json_array_append_new(history, o);
	}
	return json_pack(
		"{s:s, s:s?, s:s, s:s, s:s, s:I, s:o, s:I, s:{s:b, s:b, s:s?}, s:I, s:I, s:o*}",
		"kernel", s->config.kernel, "name", s->config.name, "language", s->language,
		"banner", s->banner, "state",
		s->dead	     ? "ended"
		: s->frozen  ? "frozen"
		: !s->ready  ? "starting"
		: s->running ? "busy"
			     : "idle",
		"executions", (json_int_t)s->last_id, "running",
		s->running ? json_integer((json_int_t)s->running->id) : json_null(), "queued",
		(json_int_t)s->nqueued, "rollback", "wanted", s->config.rollback, "undo",
		s->undoable != 0, "why", s->undoable || !s->not_armed[0] ? NULL : s->not_armed,
		"idle_ms", s->running ? (json_int_t)0 : (json_int_t)((now - s->used_us) / 1000),
		"idle_limit_ms", (json_int_t)s->config.idle_ms, "history", history);
}

/* ---- its end by itself ---- */

static void on_idle(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	uint64_t now = clock_mono_us(), limit = s->config.idle_ms * 1000;

	(void)fd;
	(void)what;
	/* Frozen, its clock stands. */
	if (s->running || s->nqueued || s->request || s->frozen || !TAILQ_EMPTY(&s->waiters))
		session_touch(s);
	if (now >= s->used_us + limit)
		s->config.ops->over(s->config.arg, "idle");
	else
		session_timer(s->idle, s->used_us > now ? limit : s->used_us + limit - now);
}

static void on_lifetime(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	s->config.ops->over(s->config.arg, "lifetime");
}

void session_claim(struct session *s, const char *name)
{
	s->config.name = name;
	session_touch(s);
	if (s->config.idle_ms)
		session_timer(s->idle, s->config.idle_ms * 1000);
	if (s->config.lifetime_ms)
		session_timer(s->lifetime, s->config.lifetime_ms * 1000);
}

int session_new(const struct session_config *config, struct session **ret, struct pale_err *err)
{
	struct session *s = calloc(1, sizeof(*s));
	struct kernel_config kernel = {
		.base = config->base,
		.fd = config->fd,
		.message = on_message,
		.before = on_before,
		.ended = on_kernel_ended,
		.arg = s,
	};
	int r;

	*ret = s;
	if (!s)
		return err_nomem(err, STAGE);
	s->config = *config;
	TAILQ_INIT(&s->executions);
	TAILQ_INIT(&s->waiters);
	session_touch(s);
	s->made_us = s->used_us;
	s->timeout.event = event_new(config->base, -1, 0, on_timeout, s);
	s->grace.event = event_new(config->base, -1, 0, on_grace, s);
	s->notify = event_new(config->base, -1, 0, on_notify, s);
	s->idle = event_new(config->base, -1, 0, on_idle, s);
	s->lifetime = event_new(config->base, -1, 0, on_lifetime, s);
	if (!s->timeout.event || !s->grace.event || !s->notify || !s->idle || !s->lifetime)
		return err_nomem(err, STAGE);
	r = session_freeze_init(s, err);
	if (r == 0)
		r = kernel_new(&kernel, &s->kernel, err);
	if (r == 0 && !config->held)
		session_claim(s, config->name);
	return r;
}

bool session_ready(const struct session *s)
{
	return s->ready;
}

bool session_busy(const struct session *s)
{
	return s->running || s->nqueued;
}

void session_free(struct session *s)
{
	struct execution *x;
	struct waiter *w;

	if (!s)
		return;
	while ((w = TAILQ_FIRST(&s->waiters)))
		waiter_free(w);
	while ((x = TAILQ_FIRST(&s->executions))) {
		TAILQ_REMOVE(&s->executions, x, entry);
		execution_free(x);
	}
	kernel_free(s->kernel);
	session_freeze_free(s);
	struct event *events[] = {s->timeout.event, s->grace.event, s->notify, s->idle,
				  s->lifetime};

	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
		if (events[i])
			event_free(events[i]);
	free(s);
}
