/* One run: see supervise.h. The order is in supervise_run(); each step leaves the run in a state
 * that clean_up() can end. */
#include "supervise.h"

#include <event2/event.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "confine/seccomp.h"
#include "init/protocol.h"
#include "isolation/zygote.h"
#include "plan/reach.h"
#include "supervise/run.h"
#include "supervise/runtime.h"
#include "supervise/trust.h"
#include "supervise/views.h"

#define STAGE	 "supervise"
/* What a dead box left in its pipes is passed on for so long, if a limit ended it. */
#define DRAIN_MS 2000

/* --- ending ------------------------------------------------------------------------------------
 */

void run_end(struct run *run, enum outcome outcome)
{
	if (run->decided)
		return;
	run->decided = true;
	run->result->outcome = outcome;
	if (run->cgroup)
		cgroup_remember(run->cgroup);
	isolation_kill(&run->box);
	freeze_end(run);
}

void run_fail(struct run *run, const struct pale_err *err)
{
	if (run->error.code == PALE_OK)
		run->error = *err;
	run_end(run, OUTCOME_FAILED);
}

void run_log(struct run *run, const char *stage, const char *event, json_t *body)
{
	struct pale_err err;

	/* Fail closed: what is not on record does not go on. */
	if (audit_append(run->log, stage, event, body, &err) < 0)
		run_fail(run, &err);
}

static const enum outcome limit_outcomes[LIMIT_COUNT] = {
	[LIMIT_WALL] = OUTCOME_WALL,	 [LIMIT_CPU] = OUTCOME_CPU,
	[LIMIT_MEMORY] = OUTCOME_MEMORY, [LIMIT_FILE_SIZE] = OUTCOME_FILE_SIZE,
	[LIMIT_OUTPUT] = OUTCOME_OUTPUT,
};

void run_limit(struct run *run, enum limit limit, uint64_t used, uint64_t max, bool ended)
{
	struct limit_hit *hit = &run->result->limits[limit];

	if (hit->hit)
		return;
	*hit = (struct limit_hit){
		.hit = true, .ended = ended && !run->decided, .max = max, .used = used};
	/* The box first: the log can wait for a millisecond, a bomb cannot. */
	if (ended)
		run_end(run, limit_outcomes[limit]);
	run_log(run, STAGE, "limit.hit",
		json_pack("{ss sI sI ss sb}", "limit", limit_name(limit), "max", (json_int_t)max,
			  "used", (json_int_t)used, "unit", limit_unit(limit), "ended",
			  hit->ended));
}

/* --- the loop ----------------------------------------------------------------------------------
 */

int run_watch(struct run *run, int fd, short what, event_callback_fn fn, struct pale_err *err)
{
	struct event *e;

	if (run->nwatched == MAX_EVENTS)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "too many things to watch");
	e = event_new(run->base, fd, what | EV_PERSIST, fn, run);
	if (!e || event_add(e, NULL) < 0) {
		if (e)
			event_free(e);
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "cannot watch a descriptor");
	}
	run->watched[run->nwatched++] = e;
	return 0;
}

static void stop_when_done(struct run *run)
{
	if (run->box.reaped && streams_done(run->streams))
		event_base_loopbreak(run->base);
}

static void on_data(void *arg, enum output_stream stream, const char *data, size_t len)
{
	struct run *run = arg;
	struct result *r = run->result;
	uint64_t total;
	struct pale_err err;

	r->output_bytes[stream] += len;
	if (run->session)
		session_print(run->session,
			      stream == OUTPUT_STDOUT ? EXECUTION_STDOUT : EXECUTION_STDERR, data,
			      len);
	/* Of a session what came before it was ready: it says why it never was. */
	if (r->output && (!run->session || !session_ready(run->session)) &&
	    output_add(r->output, stream, data, len, &err) < 0)
		run_fail(run, &err);
	/* A terminal has one stream. */
	if (stream == OUTPUT_STDERR || run->plan->command.tty)
		hints_add(&run->said, data, len);
	if (run->req->on_output)
		run->req->on_output(run->req->arg, stream, data, len);
	total = r->output_bytes[OUTPUT_STDOUT] + r->output_bytes[OUTPUT_STDERR];
	if (!run->session && total > run->plan->limits.output_total_bytes)
		run_limit(run, LIMIT_OUTPUT, total, run->plan->limits.output_total_bytes, true);
}

static void on_progress(void *arg)
{
	stop_when_done(arg);
}

/* From here on `status` is what a wait says of the main process. */
static void main_ended(struct run *run, const struct init_message *m)
{
	struct result *r = run->result;

	/* systemd removes the group, and what it counted, as soon as it has seen that it is empty:
	 * for that the first process has stayed. */
	if (run->cgroup)
		cgroup_remember(run->cgroup);
	if (plan_waits_for_group(run->plan))
		isolation_kill(&run->box);
	run->main_ended = true;
	/* Should it have been frozen between this message and its end. */
	if (run->frozen)
		freeze_end(run);
	r->leftover = m->leftover;
	run->init_cpu_us = m->cpu_us;
	run->init_max_rss_bytes = m->max_rss_kib * 1024;
	if (run->decided)
		return;
	run->decided = true;
	if (WIFEXITED(m->value)) {
		r->outcome = OUTCOME_EXIT;
		r->status = WEXITSTATUS(m->value);
	} else {
		r->outcome = OUTCOME_SIGNAL;
		r->status = WTERMSIG(m->value);
		if (run->interrupts &&
		    (r->status == SIGINT || r->status == SIGTERM || r->status == SIGHUP))
			r->outcome = OUTCOME_INTERRUPTED;
	}
}

/* Takes fd. */
static void on_init_message(struct run *run, const struct init_message *m, int fd)
{
	const char *name;

	switch ((enum init_kind)m->kind) {
	case INIT_EXIT: main_ended(run, m); break;
	case INIT_EXEC_FAILED:
		if (run->decided)
			break;
		run->result->exec_error = m->value;
		run->result->status = m->value == ENOENT ? 127 : 126;
		name = run->plan->command.argv[0];
		err_set(&run->error, PALE_E_NOTFOUND, STAGE,
			m->value > 0 && m->value < 4096 ? m->value : EINVAL,
			"cannot run %s in the box", QUOTED(name));
		run->decided = true;
		run->result->outcome = OUTCOME_FAILED;
		break;
	case INIT_LOOKUP:
		if (m->text_len <= sizeof(m->text))
			events_lookup(run->events, m,
				      run->notify ? notify_last_resolver(run->notify) : "");
		break;
	case INIT_CONNECTED: inbound_made(run, m, fd); return;
	case INIT_KILLED:
		if (run->session)
			session_signalled(run->session);
		break;
	case INIT_READY:
	case INIT_GO:
	case INIT_CONNECT:
	case INIT_KILL:
	case INIT_PAUSE:
	case INIT_ADOPTED:
	case INIT_END:
	case INIT_SIGNAL: break; /* nothing that init says; whoever says it is not listened to */
	}
	close_fd(&fd);
}

void run_unwatch(struct run *run, int fd)
{
	for (size_t i = 0; i < run->nwatched; i++)
		if (event_get_fd(run->watched[i]) == fd &&
		    !(event_get_events(run->watched[i]) & EV_SIGNAL))
			event_del(run->watched[i]);
}

static void drain_control(struct run *run, unsigned at_most)
{
	while (at_most--) {
		struct init_message m;
		int passed;
		ssize_t n = inbound_hear(run, &m, &passed);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			/* Init is gone; its pidfd will say when all else is too. */
			run_unwatch(run, run->box.control_fd);
			return;
		}
		if (n == (ssize_t)sizeof(m))
			on_init_message(run, &m, take_fd(&passed));
		close_fd(&passed);
	}
}

static void on_control(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	/* The other events get their turn, however many names the box asks for. */
	drain_control(arg, 64);
}

static void on_listener(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	struct pale_err err;
	int r = notify_handle(run->notify);

	(void)what;
	if (events_failed(run->events, &err) < 0)
		run_fail(run, &err);
	if (r == 0)
		return;
	run_unwatch(run, fd);
	if (r != -EPIPE) {
		err_set(&err, PALE_E_SYSTEM, STAGE, -r, "the seccomp listener failed");
		run_fail(run, &err);
	}
}

static void on_attempt(void *arg, const struct notify_event *event)
{
	struct run *run = arg;

	events_notify(run->events, run->live ? live_network(run->live) : NULL, event);
}

/* Who it was, as far as the listener knows. */
static const char *egress_program(const struct run *run, const struct egress_event *ev)
{
	if (!run->notify)
		return "";
	return ev->what == EGRESS_LOOKUP ? notify_last_resolver(run->notify)
					 : notify_client(run->notify, ev->client);
}

static void on_egress_event(void *arg, const struct egress_event *ev)
{
	struct run *run = arg;

	live_count(run->live, ev);
	events_egress(run->events, live_network(run->live), ev, egress_program(run, ev));
}

static void on_egress(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	struct broker_said said;
	struct pale_err err;

	(void)what;
	/* The other events get their turn, however much the broker has to tell. */
	for (int i = 0; i < 64; i++) {
		int r = broker_take(run->broker, &said, &err);

		if (r == 0)
			break;
		if (r < 0) {
			run_unwatch(run, fd);
			run_fail(run, &err);
			return;
		}
		if (r == BROKER_TAKEN)
			live_taken(run->live);
		else if (r == BROKER_CHANGED)
			live_acknowledged(run->live);
		else if (r == BROKER_CONNECT)
			inbound_wanted(run, said.id, said.index);
		else
			on_egress_event(run, &said.event);
	}
	if (events_failed(run->events, &err) < 0)
		run_fail(run, &err);
}

static void before_output(void *arg, pid_t pid)
{
	struct run *run = arg;

	(void)pid;
	streams_before_write(run->streams);
	if (run->session)
		session_before_print(run->session);
}

void run_give_up_output(struct run *run)
{
	streams_abandon(run->streams);
	event_base_loopbreak(run->base);
}

static void on_drain_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	run_give_up_output(arg);
}

/* The command is a zygote's fork, and no child of the first process, which would see it end. */
static void on_command_end(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;

	(void)what;
	run_unwatch(run, fd);
	isolation_command_ended(&run->box);
}

static void on_box_end(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval drain = {.tv_sec = DRAIN_MS / 1000};
	struct run *run = arg;

	(void)fd;
	(void)what;
	isolation_reap(&run->box);
	if (run->session)
		streams_before_write(run->streams);
	run->result->wall_ms = (clock_mono_us() - run->started_us) / 1000;
	/* The caller's signals and commands still count. */
	for (size_t i = 0; i < run->nbox_watched; i++)
		event_del(run->watched[i]);
	event_del(run->wall);
	event_del(run->sample);
	drain_control(run, UINT_MAX);
	/* Nobody may be reading any more; also where the command had ended by itself just before.
	 */
	if (run->unwanted ||
	    (run->result->outcome != OUTCOME_EXIT && run->result->outcome != OUTCOME_SIGNAL))
		event_add(run->drain, &drain);
	streams_box_ended(run->streams);
	stop_when_done(run);
}

/* --- the stages --------------------------------------------------------------------------------
 */

static int write_start(struct run *run, struct pale_err *err)
{
	const struct plan *plan = run->plan;
	json_t *body, *argv;
	char digest[65];
	int r = plan_digest(plan, digest, err);

	if (r < 0)
		return r;
	body = run->req->start(run->req->start_arg, err);
	if (!body)
		return -(int)err->code;
	if (plan->network || plan->kernel)
		run->policy_name = json_incref(json_object_get(body, "policy_name"));
	argv = json_array();
	for (char **a = plan->command.argv; *a; a++)
		json_array_append_new(argv, audit_text(*a, strlen(*a), 1 << 20));
	json_object_set_new(body, "argv", argv);
	json_object_set_new(body, "plan_digest", json_string(digest));
	json_object_set_new(body, "version", json_string(PALE_VERSION));
	json_object_set_new(body, "isolation", json_string("process"));
	json_object_set_new(body, "uid", json_integer(plan->host.uid));
	json_object_set_new(body, "host", json_string(plan->host.release));
	json_object_set_new(body, "cwd",
			    audit_text(plan->command.cwd, strlen(plan->command.cwd), 4096));
	if (plan->command.code)
		json_object_set_new(
			body, "code",
			audit_text(plan->command.code, plan->command.code_len, SIZE_MAX));
	r = audit_append(run->log, STAGE, "box.start", body, err);
	for (size_t i = 0; r == 0 && run->req->notes && run->req->notes[i]; i++) {
		json_t *note = json_deep_copy(run->req->notes[i]);
		char stage[16], event[32];

		snprintf(stage, sizeof(stage), "%s",
			 json_string_value(json_object_get(note, "stage")));
		snprintf(event, sizeof(event), "%s",
			 json_string_value(json_object_get(note, "event")));
		json_object_del(note, "stage");
		json_object_del(note, "event");
		r = audit_append(run->log, stage, event, note, err);
	}
	for (size_t i = 0; r == 0 && i < plan->npromises; i++) {
		const struct promise *p = &plan->promises[i];

		if (!p->best_effort)
			continue;
		json_array_append_new(run->result->best_effort,
				      json_pack("{ss ss ss}", "item", p->key, "got", p->fallback,
						"not_covered", p->uncovered));
		r = audit_append(run->log, "plan", "best_effort.used",
				 json_pack("{ss ss ss}", "item", p->key, "got", p->fallback, "why",
					   p->uncovered),
				 err);
	}
	return r;
}

static int make_cgroup(struct run *run, struct pale_err *err)
{
	if (!run->plan->use_cgroup)
		return 0;
	return cgroup_create(&run->plan->host.cgroup, audit_id(run->log), &run->plan->cgroup_limits,
			     &run->cgroup, err);
}

static void observe(void *arg, const json_t *event)
{
	struct run *run = arg;

	run->req->on_event(run->req->arg, event);
}

static int open_log(struct run *run, struct pale_err *err)
{
	int r;

	if (run->log)
		return 0;
	r = audit_create(&run->log, err);
	if (r < 0)
		return r;
	snprintf(run->result->id, sizeof(run->result->id), "%s", audit_id(run->log));
	if (run->req->on_id)
		run->req->on_id(run->req->arg, audit_id(run->log));
	if (run->req->on_event)
		audit_observe(run->log, observe, run);
	return 0;
}

static int join_cgroup(struct run *run, struct pale_err *err)
{
	int fds[CGROUP_JOIN_MAX];
	int r = make_cgroup(run, err);

	return r < 0 ? r : isolation_join(&run->box, fds, cgroup_join_fds(run->cgroup, fds), err);
}

/* What libevent cannot do its caller is told, and says it in our words. */
static void say_nothing(int severity, const char *text)
{
	(void)severity;
	(void)text;
}

static int make_loop(struct run *run, struct pale_err *err)
{
	struct event_config *config = event_config_new();

	event_set_log_callback(say_nothing);
	if (config) {
		event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV |
						      EVENT_BASE_FLAG_PRECISE_TIMER);
		run->base = event_base_new_with_config(config);
		event_config_free(config);
	}
	if (!run->base)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "cannot make an event loop");
	run->drain = event_new(run->base, -1, 0, on_drain_timeout, run);
	return run->drain ? events_new(run->log, &run->events, err) : err_nomem(err, STAGE);
}

/* The box builds itself while everything else is done here: first what the disk takes its time for,
 * then, when the box has had both processors for its longest part, the rest. A group to be cloned
 * into must be there before. */
static int build(struct run *run, struct pale_err *err)
{
	const struct plan *plan = run->plan;
	struct zygote *zygote = run->req->zygote;
	/* Into a group from outside: by systemd, or what has a zygote's user for its maker, whom a
	 * root's group is not for. */
	bool attach =
		plan_waits_for_group(plan) || (zygote && plan->use_cgroup && !plan->join_cgroup);
	_cleanup_(views_done) struct views views = {0};
	int r = 0;

	if (plan->use_cgroup && !plan->join_cgroup) {
		r = open_log(run, err);
		if (r == 0)
			r = make_cgroup(run, err);
	}
	if (r == 0 && plan->network)
		r = broker_start(plan, &run->broker, err);
	if (r == 0 && plan->network)
		r = broker_configure(run->broker, run->req->own_process, err);
	if (r == 0)
		r = isolation_start(plan, broker_placeholders(run->broker),
				    run->cgroup && !attach ? cgroup_clone_fd(run->cgroup) : -1,
				    zygote, &run->box, err);
	if (r == 0)
		r = open_log(run, err);
	if (r == 0 && attach)
		r = cgroup_attach_begin(run->cgroup, run->box.pid, err);
	if (r == 0 && plan->join_cgroup)
		r = join_cgroup(run, err);
	if (r == 0)
		r = plan_promise(run->req->plan, err);
	if (r == 0)
		r = write_start(run, err);
	if (r == 0)
		r = audit_sync_begin(run->log, err);
	if (r == 0)
		isolation_yield(&run->box);
	if (r == 0 && plan->network)
		r = isolation_network(&run->box, err);
	if (r == 0)
		r = inbound_open(run, err);
	if (r == 0 && plan->network)
		r = broker_connect(run->broker, &run->box, err);
	if (r == 0)
		r = make_loop(run, err);
	if (r == 0 && plan->kernel)
		r = session_open(run, err);
	if (r == 0 && (plan->network || plan->kernel))
		r = door_open(run, err);
	if (r == 0)
		r = views_read(plan, &views, err);
	if (r == 0 && attach)
		r = cgroup_attach_end(run->cgroup, err);
	if (r == 0 && attach)
		r = isolation_attached(&run->box, err);
	if (r == 0 && !run->req->recovered)
		r = supervise_recover(err);
	if (r >= 0)
		r = isolation_ready(plan, &run->box, err);
	if (r == 0 && plan->kernel)
		session_files_start(run);
	if (r == 0 && plan->network)
		r = broker_ready(run->broker, err);
	if (r == 0)
		r = inbound_hand_over(run, err);
	if (r == 0 && plan->network)
		r = broker_agent(run->broker, &run->box, err);
	if (r == 0 && plan->intercepts)
		r = trust_views(plan, broker_ca(run->broker), &views, err);
	if (r == 0)
		r = views_write(&views, &run->box, err);
	/* What it is then has run nothing of the policy's yet. */
	if (r == 0 && zygote)
		r = isolation_adopt(plan, run->cgroup, &run->box, err);
	zygote_free(zygote);
	return r == 0 ? audit_sync_end(run->log, err) : r;
}

/* Everything that the box can say or do from now on is watched. */
static int watch_box(struct run *run, struct pale_err *err)
{
	struct streams_config streams = {
		.base = run->base,
		.box = &run->box,
		.in = run->req->in,
		.out = run->req->out,
		.err = run->req->err,
		.data = on_data,
		.progress = on_progress,
		.arg = run,
	};
	struct notify_config notify = {
		.listener = take_fd(&run->box.listener_fd),
		.profile = run->plan->profile,
		.watch = run->plan->seccomp_watch,
		.root = run->box.root_fd,
		.memory_bytes = run->plan->limits.memory_bytes,
		.network = run->plan->network,
		.sink = on_attempt,
		.on_output_write = before_output,
		.arg = run,
	};
	int r = notify.listener >= 0 ? notify_new(&notify, &run->notify, err) : 0;

	if (r == 0)
		r = streams_new(&streams, &run->streams, err);
	if (r == 0)
		r = run_watch(run, run->box.control_fd, EV_READ, on_control, err);
	if (r == 0)
		r = run_watch(run, run->box.pidfd, EV_READ, on_box_end, err);
	if (r == 0 && run->box.command_pidfd >= 0)
		r = run_watch(run, run->box.command_pidfd, EV_READ, on_command_end, err);
	if (r == 0 && run->notify)
		r = run_watch(run, notify_fd(run->notify), EV_READ, on_listener, err);
	if (r == 0 && run->broker)
		r = run_watch(run, broker_fd(run->broker), EV_READ, on_egress, err);
	if (r == 0)
		r = limits_start(run, err);
	run->nbox_watched = run->nwatched;
	if (r == 0 && run->held)
		r = session_watch_pool(run, err);
	if (r == 0)
		r = caller_watch(run, err);
	return r;
}

static void log_ready(struct run *run)
{
	json_t *fallbacks = json_array();

	for (size_t i = 0; i < run->plan->npromises; i++)
		if (run->plan->promises[i].fallback[0])
			json_array_append_new(fallbacks, json_string(run->plan->promises[i].key));
	run_log(run, "isolation", "box.ready",
		json_pack("{sI so sI}", "init_pid", (json_int_t)run->box.pid, "fallbacks",
			  fallbacks, "setup_us", (json_int_t)run->result->setup_us));
}

/* The box is dead, its output is taken. The reasons that only the end shows. */
static void settle(struct run *run)
{
	struct result *r = run->result;
	int lost = streams_error(run->streams);

	limits_finish(run);
	/* The command was told as it would be of a reader that has gone; the caller is told more.
	 */
	if (lost) {
		r->lost = true;
		if (run->error.code == PALE_OK)
			err_set(&run->error, PALE_E_SYSTEM, STAGE, lost,
				"cannot pass the command's output on");
	}
	if (!run->decided) {
		/* Its first process ended without a word, and no limit ended it: someone outside
		 * killed it. */
		run->decided = true;
		r->outcome = OUTCOME_DESTROYED;
	}
	if (r->outcome == OUTCOME_SIGNAL && r->status == SIGXFSZ) {
		r->outcome = OUTCOME_FILE_SIZE;
		run->decided = false;
		run_limit(run, LIMIT_FILE_SIZE, run->plan->limits.file_size_bytes,
			  run->plan->limits.file_size_bytes, true);
	}
}

static void write_end(struct run *run, struct pale_err *err)
{
	struct result *r = run->result;
	json_t *body;
	char text[256];

	if (run->notify)
		notify_flush(run->notify);
	if (run->broker)
		broker_finish(run->broker, on_egress_event, run);
	events_flush(run->events);
	r->blocked = events_blocked(run->events);
	/* A session is no run that failed: each of its executions was told its own. */
	if (!run->session)
		r->hints = hints_make(r, run->plan, &run->said);
	if (run->broker) {
		r->network = events_network(run->events);
		json_object_set_new(r->network, "cpu_ms",
				    json_integer((json_int_t)(broker_cpu_us(run->broker) / 1000)));
	}
	for (int i = 0; r->output && i < OUTPUT_STREAMS; i++) {
		enum output_stream s = (enum output_stream)i;
		uint64_t omitted = output_omitted(r->output, s),
			 head = output_kept_head(r->output, s);

		if (omitted)
			run_log(run, STAGE, "output.cut",
				json_pack("{ss sI sI sI}", "stream", output_stream_names[i],
					  "kept_head", (json_int_t)head, "kept_tail",
					  (json_int_t)(output_total(r->output, s) - omitted - head),
					  "total", (json_int_t)output_total(r->output, s)));
	}
	body = json_pack("{ss ss si so sI}", "outcome", outcome_name(r->outcome), "summary",
			 result_describe(r, text, sizeof(text)), "status", result_exit_status(r),
			 "usage", result_usage_json(r), "leftover", (json_int_t)r->leftover);
	if (r->outcome == OUTCOME_SIGNAL)
		json_object_set_new(body, "signal", json_integer(r->status));
	json_object_set(body, "blocked", r->blocked);
	if (r->network)
		json_object_set(body, "network", r->network);
	if (run->error.code != PALE_OK)
		json_object_set_new(
			body, "error",
			audit_text(run->error.message, strlen(run->error.message), 512));
	if (audit_append(run->log, STAGE, "box.end", body, err) < 0 && run->error.code == PALE_OK)
		run->error = *err;
	snprintf(r->head, sizeof(r->head), "%s", audit_head(run->log));
}

static void clean_up(struct run *run)
{
	struct pale_err ignored;

	terminal_leave(&run->terminal);
	/* Before the descriptors that they watch are closed. */
	for (size_t i = 0; i < run->nwatched; i++)
		event_free(run->watched[i]);
	door_close(run);
	door_free(run->door);
	session_close(run);
	session_free(run->session);
	json_decref(run->blocked_before);
	live_free(run->live);
	json_decref(run->policy_name);
	isolation_done(&run->box);
	broker_free(run->broker);
	inbound_free(run->inbound);
	streams_free(run->streams);
	notify_free(run->notify);
	events_free(run->events);
	usage_free(run->usage);
	if (run->wall)
		event_free(run->wall);
	if (run->sample)
		event_free(run->sample);
	if (run->drain)
		event_free(run->drain);
	if (run->grace)
		event_free(run->grace);
	if (run->base)
		event_base_free(run->base);
	/* The box is dead and reaped, so its groups are empty, or will be in an instant. */
	if (run->cgroup)
		(void)!cgroup_destroy(run->cgroup, &ignored);
}

/* The log of a run that never ran says so, and why. */
static void write_failed_start(struct run *run, const struct pale_err *err)
{
	struct pale_err ignored;

	(void)!audit_append(run->log, STAGE, "box.end",
			    json_pack("{ss so si}", "outcome", outcome_name(OUTCOME_FAILED),
				      "error", audit_text(err->message, strlen(err->message), 512),
				      "status", 125),
			    &ignored);
}

int supervise_run(const struct supervise_request *req, struct result *ret, struct pale_err *err)
{
	struct run run = {.req = req,
			  .plan = req->plan,
			  .result = ret,
			  .box = BOX_INIT,
			  .terminal = {.fd = -1}};
	uint64_t begun = clock_mono_us();
	struct timespec now;
	int r;

	*ret = (struct result){.outcome = OUTCOME_FAILED, .status = 125};
	ret->best_effort = json_array();
	ret->changes = json_array();
	ret->collected = json_array();
	clock_gettime(CLOCK_REALTIME, &now);
	/* A box that closes its input, or a reader outside that goes away, is an error code here.
	 */
	signal(SIGPIPE, SIG_IGN);
	r = req->keep_output ? output_new(req->plan->limits.output_bytes, &ret->output, err) : 0;
	if (r == 0)
		r = build(&run, err);
	if (r < 0) {
		if (run.log)
			write_failed_start(&run, err);
		if (run.plan->network && strcmp(err->stage, "confine") == 0)
			reach_forget();
		clean_up(&run);
		audit_free(run.log);
		return r;
	}
	run.started_us = clock_mono_us();
	ret->setup_us = run.started_us - begun;
	if (req->plan->command.tty) {
		terminal_enter(&run.terminal, req->in);
		terminal_copy_size(&run.terminal, run.box.tty_fd);
	}
	/* What the box says before it is watched waits in its pipes. */
	r = isolation_go(req->plan, &run.box, err);
	log_ready(&run);
	if (r == 0)
		r = watch_box(&run, err);
	if (r < 0)
		run_fail(&run, err);
	if (r == 0 && event_base_dispatch(run.base) < 0) {
		err_set(&run.error, PALE_E_SYSTEM, STAGE, 0, "the event loop failed");
		run_end(&run, OUTCOME_FAILED);
	}
	terminal_leave(&run.terminal);
	if (run.session)
		session_ended(run.session, run.result->outcome == OUTCOME_EXIT ||
							   run.result->outcome == OUTCOME_SIGNAL
						   ? "died"
						   : outcome_name(run.result->outcome));
	door_close(&run);
	isolation_kill(&run.box);
	isolation_reap(&run.box);
	settle(&run);
	harvest(&run, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	write_end(&run, err);
	clean_up(&run);
	/* The end reaches the disk when the kernel writes it: a power cut before that leaves a run
	 * that counts as lost, which is what it then is. */
	audit_free(run.log);
	if (run.error.code != PALE_OK)
		*err = run.error;
	return 0;
}

static int kill_lost(void *arg, const char *id, struct pale_err *err)
{
	struct cgroup_host *host = arg;
	int r;

	if (host->kind == CGROUP_NONE)
		cgroup_probe(host);
	/* Its groups cannot be looked for: another time. */
	if (host->error)
		return err_set(err, PALE_E_SYSTEM, STAGE, host->error,
			       "cannot look for control groups");
	r = host->kind == CGROUP_NONE ? 0 : cgroup_recover(host, id, err);
	return r < 0 ? r : runtime_clean(id, err);
}

int supervise_recover(struct pale_err *err)
{
	struct cgroup_host host = {.kind = CGROUP_NONE};

	return audit_recover(kill_lost, &host, err);
}
