/* What a session needs of its run: the box's signals, streams and processor time, the log, the list
 * of what was blocked. In the supervisor. */
#include <string.h>

#include "base/fd.h"
#include "plan/kernel.h"
#include "policy/options.h"
#include "supervise/run.h"
#include "supervise/session_name.h"

#define STAGE "supervise"

static int send_signal(void *arg, int32_t pid, int signal_number, bool group)
{
	struct run *run = arg;

	if (run->box.reaped)
		return -ESRCH;
	/* An interrupt has to be heard among others who want the processor. */
	share_hurry(run);
	return isolation_kill_one(&run->box, pid, signal_number, group);
}

static int log_event(void *arg, const char *event, json_t *body)
{
	struct run *run = arg;
	struct pale_err err;
	int r = audit_append(run->log, "session", event, body, &err);

	if (r < 0)
		run_fail(run, &err);
	return r;
}

static void fail(void *arg, const struct pale_err *err)
{
	run_fail(arg, err);
}

static void drain(void *arg)
{
	struct run *run = arg;

	if (run->streams)
		streams_before_write(run->streams);
}

static uint64_t cpu_us(void *arg)
{
	struct run *run = arg;
	struct usage_now now;
	uint64_t us;

	if (!run->plan->sample_cpu && run->cgroup && !run->box.reaped &&
	    cgroup_cpu_us(run->cgroup, &us) == 0) {
		/* An execution begins, or ends: what is idle is looked at seldom. */
		limits_soon(run, share_look(run, us));
		return us + broker_cpu_us(run->broker);
	}
	if (run->usage && !run->box.reaped && usage_sample(run->usage, &now, NULL) == 0)
		return now.cpu_us + broker_cpu_us(run->broker);
	return run->result->cpu_ms * 1000;
}

static void look_at_memory(void *arg)
{
	limits_memory(arg);
}

static int freeze(void *arg, bool stop, struct pale_err *err)
{
	return freeze_set(arg, stop, err);
}

static bool stands(void *arg)
{
	return freeze_done(arg);
}

static int begin(void *arg, bool rollback, bool *ret_kept, char *ret_why)
{
	struct run *run = arg;

	run->said.len = 0;
	json_decref(run->blocked_before);
	run->blocked_before = events_blocked(run->events);
	return session_files_begin(run, rollback, ret_kept, ret_why);
}

/* The entry of the earlier list that tells of the same thing: all but its count is equal. */
static json_int_t count_before(const json_t *before, const json_t *entry)
{
	json_t *old, *wanted = json_copy((json_t *)(uintptr_t)entry);
	json_int_t count = 0;
	size_t i;

	json_object_del(wanted, "count");
	json_array_foreach(before, i, old)
	{
		json_t *same = json_copy(old);

		json_object_del(same, "count");
		if (json_equal(same, wanted))
			count = json_integer_value(json_object_get(old, "count"));
		json_decref(same);
		if (count)
			break;
	}
	json_decref(wanted);
	return count;
}

static void said(void *arg, const char *data, size_t len)
{
	struct run *run = arg;

	hints_add(&run->said, data, len);
}

static bool is_text(const json_t *o, const char *key, const char *text)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s && strcmp(s, text) == 0;
}

/* What stood in the way of an execution: as for a run, but that a limit of the whole box that was
 * reached does not tell by whom, and is noted late: what the execution says of it counts. A disk
 * that is full says so to each that fails meanwhile. */
static json_t *hints_for(struct run *run, const json_t *result, json_t *blocked)
{
	static const struct {
		const char *outcome;
		enum limit limit;
	} ends[] = {{"timeout", LIMIT_WALL},
		    {"cpu", LIMIT_CPU},
		    {"output", LIMIT_OUTPUT},
		    {"memory", LIMIT_MEMORY}};
	struct result of = {.outcome = OUTCOME_EXIT,
			    .processes_peak = run->result->processes_peak,
			    .blocked = blocked};
	unsigned set = 0;

	of.status = !(is_text(result, "outcome", "ok") || is_text(result, "outcome", "ended")) ||
		    json_integer_value(json_object_get(result, "status")) != 0;
	if (of.status)
		set = limits_full(run);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (is_text(result, "outcome", ends[i].outcome))
			set |= 1u << ends[i].limit;
	for (int i = 0; i < LIMIT_COUNT; i++)
		of.limits[i].hit = set >> i & 1;
	/* Whoever interrupts it knows why. */
	if (is_text(result, "outcome", "interrupted"))
		of.status = 0;
	return hints_make(&of, run->plan, &run->said);
}

static int settle(void *arg, bool back, json_t *result)
{
	struct run *run = arg;
	json_t *now = events_blocked(run->events), *list = json_array(), *entry;
	size_t i;

	json_array_foreach(now, i, entry)
	{
		json_int_t count = json_integer_value(json_object_get(entry, "count")),
			   before = json_array_size(run->blocked_before)
					    ? count_before(run->blocked_before, entry)
					    : 0;
		json_t *mine;

		if (count <= before)
			continue;
		mine = json_copy(entry);
		json_object_set_new(mine, "count", json_integer(count - before));
		json_array_append_new(list, mine);
	}
	json_object_set_new(result, "blocked", list);
	json_object_set_new(result, "hints", hints_for(run, result, list));
	json_decref(now);
	json_decref(run->blocked_before);
	run->blocked_before = NULL;
	return session_files_settle(run, back, result);
}

static int put_back(void *arg, json_t **ret)
{
	return session_files_back(arg, ret);
}

static void ready(void *arg)
{
	struct run *run = arg;

	if (run->held)
		run->req->session->held(run->req->arg, audit_id(run->log), false);
	if (run->req->session->ready) {
		if (run->req->control >= 0)
			run_unwatch(run, run->req->control);
		if (run->req->caller_pidfd > 0)
			run_unwatch(run, run->req->caller_pidfd);
		run->req->session->ready(run->req->arg);
	}
}

static void warm(void *arg)
{
	struct run *run = arg;

	if (run->held)
		run->req->session->held(run->req->arg, audit_id(run->log), true);
}

static void over(void *arg, const char *why)
{
	struct run *run = arg;

	(void)log_event(run, "session.over", json_pack("{s:s}", "why", why));
	run_end(run, OUTCOME_DESTROYED);
}

/* The pool hands a client over, wants the box warm (a byte alone), or has ended. */
static void on_pool(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	char byte;
	int client = -1;
	size_t n = 0;
	ssize_t got = fd_recv(fd, &byte, 1, &client, 1, &n);

	(void)what;
	/* It was handed over while the pool had not read yet that it is warm: what the pool sent is
	 * there all the same. */
	if (got == -ECONNRESET)
		got = fd_recv(fd, &byte, 1, &client, 1, &n);
	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got == 1 && n == 0 && run->held) {
		session_warm_up(run->session);
		return;
	}
	run_unwatch(run, fd);
	if (got != 1 || n != 1 || !run->held) {
		close_fd(&client);
		run_end(run, OUTCOME_DESTROYED);
		return;
	}
	door_admit(run->door, client);
}

int session_claimed(void *arg, const char *name, const struct live_who *who, struct pale_err *err)
{
	struct run *run = arg;
	int r = 0;

	if (!run->held)
		return err_set(err, PALE_E_CONFLICT, STAGE, 0,
			       "this session is somebody's already");
	run->held = false;
	if (name && !session_name_valid(name))
		r = err_set(err, PALE_E_USAGE, STAGE, 0, "that is no name for a session");
	if (r == 0 && name)
		r = session_name_take(name, audit_id(run->log), err);
	if (r == 0 && name)
		snprintf(run->name, sizeof(run->name), "%s", name);
	if (r == 0 &&
	    log_event(run, "session.claimed",
		      json_pack("{s:s?, s:I, s:I, s:o}", "name", name, "uid", (json_int_t)who->uid,
				"pid", (json_int_t)who->pid, "program",
				audit_text(who->program, strlen(who->program), 16))) < 0)
		r = err_set(err, PALE_E_AUDIT, STAGE, 0, "the log cannot be written");
	/* It is used once, or not at all. */
	if (r < 0)
		run_end(run, OUTCOME_DESTROYED);
	else
		session_claim(run->session, run->name[0] ? run->name : NULL);
	return r;
}

int session_watch_pool(struct run *run, struct pale_err *err)
{
	return run_watch(run, run->req->session->held_fd, EV_READ, on_pool, err);
}

int session_open(struct run *run, struct pale_err *err)
{
	static const struct session_ops ops = {
		.signal = send_signal,
		.log = log_event,
		.fail = fail,
		.drain = drain,
		.cpu_us = cpu_us,
		.said = said,
		.look_at_memory = look_at_memory,
		.freeze = freeze,
		.stands = stands,
		.begin = begin,
		.settle = settle,
		.put_back = put_back,
		.answer = door_answer,
		.ready = ready,
		.warm = warm,
		.over = over,
	};
	const struct plan *plan = run->plan;
	const char *name = run->req->session->name;
	struct session_config config = {
		.base = run->base,
		.fd = take_fd(&run->box.kernel_fd),
		.kernel = kernel_name(plan->kernel),
		.name = name,
		.wall_ms = plan->limits.wall_ms,
		.cpu_ms = plan->limits.cpu_ms,
		.output_bytes = plan->limits.output_bytes,
		.output_total_bytes = plan->limits.output_total_bytes,
		.grace_ms = plan->session.grace_ms,
		.idle_ms = plan->session.idle_ms,
		.lifetime_ms = plan->session.lifetime_ms,
		.rollback = plan->session.rollback != BOOL_FALSE,
		.held = run->req->session->held != NULL,
		.warm_up = kernel_warm_up(plan->kernel),
		.ops = &ops,
		.arg = run,
	};
	int r = session_new(&config, &run->session, err);

	run->held = config.held;
	if (r == 0 && name)
		r = session_name_take(name, audit_id(run->log), err);
	if (r == 0 && name)
		snprintf(run->name, sizeof(run->name), "%s", name);
	return r;
}

void session_close(struct run *run)
{
	if (run->name[0])
		session_name_drop(run->name, audit_id(run->log));
	run->name[0] = '\0';
}
