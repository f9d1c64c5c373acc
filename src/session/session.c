/* A session: see session.h. In the supervisor, in its event loop; nothing here waits.
 *
 * Hostile: what the kernel says (kernel.c bounds it) and prints. It may say anything in any order:
 * what does not fit is passed over, and nothing of it decides more than how its own executions
 * look. Clients are the box's owner; each is answered once, or forgotten.
 *
 * The kernel runs one thing at a time. An execution is under way from EXECUTE to DONE, or to BACK
 * if what ran it died; undo, restart, completion and inspection are requests, one at a time, while
 * none is. How what runs is made to end is in ending.c.
 *
 * Between what the kernel says and what the client hears stand the files: an execution begins when
 * they are kept (session_begun()), and has ended when they were looked at, or brought back
 * (session_settled()). */
#include "session/session_impl.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "audit/audit.h"
#include "base/clock.h"
#include "base/str.h"
#include "session/kernel.h"

#define STAGE	    "session"
#define KEEP	    128		 /* executions that are remembered with what they printed */
#define KEEP_BYTES  (128u << 20) /* of it, together */
#define REMEMBER    4096	 /* and that are remembered at all */
#define LOGGED_PATH 300
#define WARM_UP_US \
	10000000       /* a module of the policy's that waits for something is not waited for */
#define FILE_BYTES 600 /* of a file that was changed, besides its texts */
#define LOGGED_MAX 100 /* files that an execution changed, in the log */

static void warmed_up(struct session *s);

void session_notify(struct session *s)
{
	/* Not now: what else has come of the same packet or pipe goes along. */
	event_active(s->notify, EV_TIMEOUT, 1);
}

void session_signal(struct session *s, int32_t pid, int number)
{
	if (s->config.ops->signal(s->config.arg, pid, number, true) == 0)
		s->signals++;
}

void session_signalled(struct session *s)
{
	if (s->signals && --s->signals == 0)
		session_start_next(s);
}

void session_fail(struct session *s, const struct pale_err *err)
{
	s->config.ops->fail(s->config.arg, err);
}

void session_timer(struct event *e, uint64_t us)
{
	struct timeval tv = {.tv_sec = (time_t)(us / 1000000),
			     .tv_usec = (suseconds_t)(us % 1000000)};

	/* A time that cannot be waited for has come: without end would be worse. */
	if (event_add(e, &tv) < 0)
		event_active(e, EV_TIMEOUT, 1);
}

void session_touch(struct session *s)
{
	s->used_us = clock_mono_us();
}

struct execution *session_find(struct session *s, uint32_t id)
{
	struct execution *x;

	if (!id)
		return TAILQ_LAST(&s->executions, execution_list);
	TAILQ_FOREACH_REVERSE(x, &s->executions, execution_list, entry)
	if (x->id == id)
		return x;
	return NULL;
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
		session_fail(s, &err);
	session_notify(s);
}

void session_start_next(struct session *s)
{
	struct execution *x;
	char why[SESSION_WHY] = "";
	bool kept = false;

	if (!s->ready || s->running || s->request || s->dead || s->frozen || s->signals ||
	    !s->nqueued)
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
	x->started_us = clock_mono_us();
	s->beginning = true;
	if (s->config.ops->begin(s->config.arg, x->rollback, &kept, why) != SESSION_LATER)
		session_begun(s, kept, why);
}

void session_begun(struct session *s, bool kept, const char *why)
{
	struct execution *x = s->running;
	struct pale_err err;

	if (!s->beginning || s->dead)
		return;
	s->beginning = false;
	x->kept = kept;
	if (x->rollback && !kept)
		snprintf(x->why_files, sizeof(x->why_files), "%s", why);
	if (s->note[0]) {
		add_note(s, x, s->note, strlen(s->note));
		s->note[0] = '\0';
	}
	/* The time that the box stands is added when it goes on. */
	x->started_us = s->frozen ? s->frozen_us : clock_mono_us();
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
		session_fail(s, &err);
}

/* ---- executions: their end ---- */

/* The first line of the code that has something. */
const char *session_first_line(const struct execution *x, size_t *ret_len)
{
	const char *line = x->code + strspn(x->code, " \t\r\n");

	while (line > x->code && line[-1] != '\n')
		line--;
	*ret_len = strcspn(line, "\n");
	if (*ret_len > SESSION_CODE_LINE)
		*ret_len = SESSION_CODE_LINE;
	return line;
}

/* It is enough from now on. */
void session_shorten(struct execution *x)
{
	const char *line = session_first_line(x, &x->code_len);

	memmove(x->code, line, x->code_len);
	x->code[x->code_len] = '\0';
}

/* how: what it took, or NULL. kept: the session's state now. */
static void finish(struct session *s, const char *outcome, const char *how, const char *kept,
		   json_t *status)
{
	struct execution *x = s->running;
	bool back = strcmp(kept, "held") == 0;
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
	if (x->name[0])
		json_object_set_new(result, "error", json_string(x->name));
	if (x->why[0])
		json_object_set_new(result, "not_armed", json_string(x->why));
	if (x->why_files[0])
		json_object_set_new(result, "files_not_kept", json_string(x->why_files));
	s->result = result;
	s->beginning = false;
	s->settling = true;
	if (s->config.ops->settle(s->config.arg, back, result) != SESSION_LATER || s->dead)
		session_settled(s, NULL);
}

/* What a list of files takes, about. */
static uint64_t files_bytes(const json_t *files)
{
	uint64_t bytes = 0;
	json_t *file, *value;
	const char *key;
	size_t i;

	json_array_foreach(files, i, file)
	{
		bytes += FILE_BYTES;
		json_object_foreach(file, key, value) bytes += json_string_length(value);
	}
	return bytes;
}

/* Of a long list of files the log has the beginning, and so of long paths. */
static json_t *to_log(const json_t *result)
{
	json_t *o = json_deep_copy(result), *files = json_object_get(o, "files"), *file, *value;
	size_t n = json_array_size(files), i;
	const char *key;

	/* What follows from the policy and the rest is not on record. */
	json_object_del(o, "hints");
	json_array_foreach(files, i, file) json_object_foreach(file, key, value)
	{
		if (json_string_length(value) > LOGGED_PATH)
			json_object_set_new(file, key,
					    audit_text(json_string_value(value),
						       json_string_length(value), LOGGED_PATH));
	}
	if (n <= LOGGED_MAX)
		return o;
	for (i = n; i > LOGGED_MAX; i--)
		json_array_remove(files, i - 1);
	json_object_set_new(o, "files_more",
			    json_integer(json_integer_value(json_object_get(result, "files_more")) +
					 (json_int_t)(n - LOGGED_MAX)));
	return o;
}

void session_settled(struct session *s, json_t *files)
{
	struct execution *x = s->running;
	json_t *result = s->result;

	if (!s->settling) {
		json_decref(files);
		return;
	}
	if (files)
		json_object_update(result, files);
	json_decref(files);
	x->files_bytes = files_bytes(json_object_get(result, "files"));
	if (!json_object_get(result, "files"))
		json_object_set_new(result, "files", json_null());
	s->settling = false;
	s->result = NULL;
	x->result = result;
	x->state = EXECUTION_DONE;
	session_shorten(x);
	s->running = NULL;
	session_touch(s);
	(void)!s->config.ops->log(s->config.arg, "exec.end", to_log(result));
	forget_some(s);
	session_notify(s);
	session_start_next(s);
}

static void take_done(struct session *s, const struct frame *f)
{
	struct execution *x = s->running;
	json_t *status = NULL;
	const char *outcome, *how = NULL;
	char number[16];

	/* Before it was sent nobody has run it. */
	if (!x || f->id != x->id || s->beginning || s->settling)
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
		outcome = session_cause_outcomes[s->cause];
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
	finish(s, ours ? session_cause_outcomes[s->cause] : "died",
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
		s->config.ops->answer(client, result, err);
	else
		json_decref(result);
	session_start_next(s);
}

void session_put_back(struct session *s, json_t *files)
{
	json_t *o;

	if (!s->undoing) {
		json_decref(files);
		return;
	}
	s->undoing = false;
	o = json_pack("{s:I}", "undone", (json_int_t)s->undone);
	if (files)
		json_object_update(o, files);
	json_decref(files);
	files = json_deep_copy(o);
	json_object_del(files, "undone");
	json_object_del(files, "files");
	json_object_set_new(files, "execution", json_integer((json_int_t)s->undone));
	(void)!s->config.ops->log(s->config.arg, "session.undone", files);
	request_answer(s, o, NULL);
}

static void take_back(struct session *s, const struct frame *f)
{
	bool held = frame_key_is(f, "held");
	bool same = frame_key_is(f, "kept");
	uint32_t undone = s->undoable;

	/* That there is a fresh interpreter after one that ended itself was said with its end; the
	 * next execution may have begun since, and waits for this one. */
	if (f->id && f->id == s->ended_id) {
		s->ended_id = 0;
		return;
	}
	/* One that has not begun yet is run by whoever has come back. */
	if (s->running && !s->beginning && !s->settling &&
	    (f->id == s->running->id || s->running->pid)) {
		died(s, f, held || same);
		return;
	}
	if (!same)
		s->undoable = 0;
	if (s->request == FRAME_UNDO && held && !s->undoing) {
		json_t *files = NULL;

		snprintf(s->not_armed, sizeof(s->not_armed), "it was undone already");
		clock_stop(&s->grace);
		s->undoing = true;
		s->undone = undone;
		if (s->config.ops->put_back(s->config.arg, &files) != SESSION_LATER)
			session_put_back(s, files);
	} else if (s->request == FRAME_RESTART) {
		snprintf(s->not_armed, sizeof(s->not_armed), "the session was restarted");
		(void)!s->config.ops->log(s->config.arg, "session.restarted", json_object());
		request_answer(s, json_pack("{s:s}", "state", "fresh"), NULL);
	} else {
		/* It died while nothing ran, by whatever it had left running; what was sent to it
		 * just then is run by the one that has taken its place. */
		snprintf(s->note, sizeof(s->note),
			 "pale: the interpreter ended between two executions; %s",
			 same	? "nothing is lost: variables are as the last one left them"
			 : held ? "variables are as before the last one, files as it left them"
				: "this is a fresh one: variables are gone, files are there");
		if (!same)
			snprintf(s->not_armed, sizeof(s->not_armed),
				 "the interpreter has ended since");
		if (s->running && !s->settling) {
			add_note(s, s->running, s->note, strlen(s->note));
			s->note[0] = '\0';
		}
		if (s->request && !s->undoing) {
			struct pale_err err;

			err_set(&err, PALE_E_CONFLICT, STAGE, 0, "the interpreter ended meanwhile");
			request_answer(s, NULL, &err);
		}
	}
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

/* Nobody's execution: its output is nobody's. What comes meanwhile waits for its end. */
void session_warm_up(struct session *s)
{
	struct execution *x;
	struct pale_err err;

	if (!s->ready || s->dead || s->running || s->nqueued || s->request || s->frozen ||
	    !TAILQ_EMPTY(&s->executions))
		return;
	x = execution_new(0, 0);
	if (!x)
		return;
	s->running = x;
	x->rollback = s->config.rollback;
	x->state = EXECUTION_RUNNING;
	s->cause = CAUSE_NONE;
	s->stage = STAGE_RUNS;
	s->escalated = false;
	s->cpu_base_us = s->config.ops->cpu_us(s->config.arg);
	clock_start(s, &s->timeout, WARM_UP_US);
	if (kernel_send(s->kernel,
			&(struct frame){.kind = FRAME_EXECUTE,
					.value = x->rollback ? FRAME_ROLLBACK : 0,
					.data = s->config.warm_up,
					.data_len = strlen(s->config.warm_up)},
			&err) < 0)
		session_fail(s, &err);
}

static void warmed_up(struct session *s)
{
	execution_free(s->running);
	s->running = NULL;
	s->undoable = 0;
	s->not_armed[0] = '\0';
	s->config.ops->warm(s->config.arg);
	session_start_next(s);
}

static void take_ready(struct session *s, const struct frame *f)
{
	if (s->ready || s->running)
		return;
	str_escape_into(s->language, sizeof(s->language), f->key, f->key_len);
	str_escape_into(s->banner, sizeof(s->banner), f->data, f->data_len);
	tell_ready(s);
}

static void take_started(struct session *s, const struct frame *f)
{
	struct execution *x = s->running;
	struct pale_err err;

	if (!x || f->id != x->id || x->pid || s->beginning || s->settling)
		return;
	x->pid = f->value > 1 ? f->value : 0;
	x->armed = x->rollback && frame_key_is(f, "armed");
	if (x->rollback && !x->armed)
		str_escape_into(x->why, sizeof(x->why), f->data, f->data_len);
	/* Said before, not after. */
	if (execution_add(x,
			  json_pack("{s:s, s:b, s:s?, s:b, s:s?}", "type", "started", "rollback",
				    x->armed, "why", x->why[0] ? x->why : NULL, "files", x->kept,
				    "files_why", x->why_files[0] ? x->why_files : NULL),
			  sizeof(x->why) + sizeof(x->why_files), &err) < 0)
		session_fail(s, &err);
	session_notify(s);
	if (s->stage != STAGE_RUNS && x->pid)
		session_signal(s, x->pid, s->stage == STAGE_KILLED ? SIGKILL : SIGINT);
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

	/* Once it goes back it is too late to say no. */
	if (!s->request || s->undoing || f->id != s->request_id)
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
		session_fail(s, &err);
	session_notify(s);
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
		x = session_find(s, f->id);
	if (!x || x->id != f->id)
		return;
	if (f->kind == FRAME_DATA)
		r = execution_show(x, f, &err);
	else if (f->kind == FRAME_ERROR) {
		if (x == s->running && f->data_len)
			s->config.ops->said(s->config.arg, f->data, f->data_len);
		r = execution_fail(x, f, &err);
	} else
		add_note(s, x, f->data, f->data_len < 4096 ? f->data_len : 4096);
	if (f->kind == FRAME_NOTE)
		x->display_bytes += f->data_len;
	if (r < 0)
		session_fail(s, &err);
	else if (s->running)
		session_check_output(s);
	session_notify(s);
}

static void on_kernel_ended(void *arg, const char *why)
{
	struct session *s = arg;
	struct pale_err err;

	/* Its box ends with it: the first process is the kernel's. */
	if (!why)
		return;
	err_set(&err, PALE_E_SYSTEM, STAGE, 0, "%s", why);
	session_fail(s, &err);
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
	struct execution *x = s->running ? s->running : session_find(s, 0);
	struct pale_err err;

	/* Before the first execution: nobody asked for it. */
	if (!x || x->state == EXECUTION_QUEUED)
		return;
	if (execution_print(x, stream, data, len, &err) < 0)
		session_fail(s, &err);
	else if (x == s->running)
		session_check_output(s);
	session_notify(s);
}

void session_ended(struct session *s, const char *outcome)
{
	struct execution *x;
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
		session_shorten(x);
	}
	s->nqueued = 0;
	s->undoing = false;
	if (s->settling)
		session_settled(s, NULL);
	if (s->running)
		finish(s, outcome, "destroyed", "gone", NULL);
	if (s->request) {
		err_set(&err, PALE_E_CONFLICT, STAGE, 0, "the box has ended");
		request_answer(s, NULL, &err);
	}
	session_answer_all(s);
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
	s->config.held = false;
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
	s->timeout.event = event_new(config->base, -1, 0, session_on_timeout, s);
	s->grace.event = event_new(config->base, -1, 0, session_on_grace, s);
	s->notify = event_new(config->base, -1, 0, session_on_notify, s);
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

	if (!s)
		return;
	session_forget_all(s);
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
