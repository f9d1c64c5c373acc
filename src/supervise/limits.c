/* Limits that the supervisor watches: wall time by a timer, processor time and (where no cgroup
 * does it) memory by reading counters, disk by the fill of the box's tmpfs.
 *
 * The next look is taken when a limit could first be reached, so that an idle box costs a wake-up
 * every half second and a busy one is ended within a few milliseconds of its limit. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "supervise/run.h"
#include "supervise/trim.h"

#define STAGE	      "supervise"
#define LOOK_MAX_MS   500
#define LOOK_FIRST_MS 260 /* whether it is busy: share.h */
#define LOOK_MIN_MS   5
#define LOOK_IDLE_MS  5000
#define TRIM_AFTER_US 400000 /* a short run needs no tidying */

static void look_again(struct run *run, uint64_t ms)
{
	struct timeval tv = {.tv_sec = (time_t)(ms / 1000),
			     .tv_usec = (suseconds_t)(ms % 1000) * 1000};

	run->next_look_us = clock_mono_us() + ms * 1000;
	/* A time that cannot be waited for has come: nobody would look again. */
	if (event_add(run->sample, &tv) < 0)
		event_active(run->sample, EV_TIMEOUT, 1);
}

void limits_soon(struct run *run, uint64_t ms)
{
	if (run->sample && run->next_look_us > clock_mono_us() + ms * 1000)
		look_again(run, ms);
}

static void on_wall(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	uint64_t used = (clock_mono_us() - run->started_us) / 1000;

	(void)fd;
	(void)what;
	run_limit(run, LIMIT_WALL, used, run->plan->limits.wall_ms, true);
}

unsigned limits_full(struct run *run)
{
	struct result *r = run->result;
	struct statvfs st;

	if (run->box.data_fd < 0 || fstatvfs(run->box.data_fd, &st) < 0 || !st.f_blocks)
		return 0;
	if ((st.f_blocks - st.f_bfree) * st.f_frsize > r->disk_bytes)
		r->disk_bytes = (st.f_blocks - st.f_bfree) * st.f_frsize;
	if (st.f_files - st.f_ffree > r->disk_inodes)
		r->disk_inodes = st.f_files - st.f_ffree;
	if (st.f_bfree == 0)
		run_limit(run, LIMIT_DISK, r->disk_bytes, st.f_blocks * st.f_frsize, false);
	if (st.f_ffree == 0)
		run_limit(run, LIMIT_INODES, r->disk_inodes, st.f_files, false);
	return (st.f_bfree == 0 ? 1u << LIMIT_DISK : 0) |
	       (st.f_ffree == 0 ? 1u << LIMIT_INODES : 0);
}

/* What the kernel's counters of the box's groups say; false if there are none. */
static bool look_at_cgroup(struct run *run, struct cgroup_usage *u)
{
	struct pale_err err;

	if (!run->cgroup)
		return false;
	if (cgroup_usage(run->cgroup, u, &err) < 0) {
		run_fail(run, &err);
		return false;
	}
	if (u->memory_peak_bytes > run->result->memory_peak_bytes)
		run->result->memory_peak_bytes = u->memory_peak_bytes;
	if (u->processes_peak > run->result->processes_peak)
		run->result->processes_peak = u->processes_peak;
	return true;
}

/* What the box's processes have used, and the broker for them: what it does, and how often, they
 * say. */
static void check_cpu(struct run *run, uint64_t cpu_us, bool final)
{
	uint64_t max_us = run->plan->limits.cpu_ms * 1000;

	cpu_us += broker_cpu_us(run->broker);
	if (cpu_us / 1000 > run->result->cpu_ms)
		run->result->cpu_ms = cpu_us / 1000;
	if (run->session)
		session_cpu(run->session, cpu_us);
	else if (cpu_us >= max_us)
		run_limit(run, LIMIT_CPU, cpu_us / 1000, run->plan->limits.cpu_ms, !final);
}

/* The kernel kills first and tells then, so the main process's end may be known before what caused
 * it. */
static void memory_over(struct run *run, uint64_t used, bool killed)
{
	const struct result *r = run->result;

	/* In a session an execution has to go, not what was there before it. */
	if (run->session && !run->box.reaped && session_memory(run->session, killed)) {
		run_log(run, STAGE, "limit.hit",
			json_pack("{ss sI sI ss sb}", "limit", limit_name(LIMIT_MEMORY), "max",
				  (json_int_t)run->plan->limits.memory_bytes, "used",
				  (json_int_t)used, "unit", limit_unit(LIMIT_MEMORY), "ended", 0));
		return;
	}

	if (run->main_ended && ((r->outcome == OUTCOME_SIGNAL && r->status == SIGKILL) ||
				(r->outcome == OUTCOME_EXIT && r->status != 0)))
		run->decided = false;
	run_limit(run, LIMIT_MEMORY, used, run->plan->limits.memory_bytes, true);
}

/* That can be used at a time: the broker has one thread. */
static unsigned processors(const struct run *run)
{
	return run->plan->affinity + (run->broker ? 1 : 0);
}

/* When to look at it again: one that does nothing can wait. */
static uint64_t look_at_session(const struct run *run, uint64_t next)
{
	uint64_t left_us = session_cpu_left_us(run->session);

	if ((!session_busy(run->session) || run->frozen) && !run->usage)
		return LOOK_IDLE_MS;
	if (left_us && left_us / processors(run) / 1000 < next)
		next = left_us / processors(run) / 1000;
	return next < LOOK_MIN_MS ? LOOK_MIN_MS : next;
}

static bool new_kills(struct run *run, const struct cgroup_usage *u)
{
	bool more = u->oom_kills > run->oom_kills;

	run->oom_kills = u->oom_kills;
	return more;
}

/* Kept as last seen: a scope of systemd's is gone at the end. */
static void note_throttled(struct run *run)
{
	uint64_t ms =
		run->plan->cgroup_limits.cpus_milli ? cgroup_throttled_us(run->cgroup) / 1000 : 0;

	if (ms > run->result->throttled_ms)
		run->result->throttled_ms = ms;
}

static uint64_t look(struct run *run, bool final)
{
	const struct policy_limits *limits = &run->plan->limits;
	uint64_t next = LOOK_MAX_MS, left_us;
	struct cgroup_usage g = {0};
	struct usage_now now = {0};

	(void)limits_full(run);
	if (look_at_cgroup(run, &g)) {
		if (!final && !run->frozen)
			next = share_look(run, g.cpu_us);
		if (!run->plan->sample_cpu)
			check_cpu(run, g.cpu_us, final);
		note_throttled(run);
		if (!run->plan->sample_memory && new_kills(run, &g))
			memory_over(run, g.memory_peak_bytes, true);
		if (g.processes_refused)
			run_limit(run, LIMIT_PROCESSES, limits->processes, limits->processes,
				  false);
	}
	if (run->usage && !final) {
		if (usage_sample(run->usage, &now, NULL) == 0 && now.next_sample_ms < next)
			next = now.next_sample_ms;
		if (run->plan->sample_cpu)
			check_cpu(run, now.cpu_us, false);
		if (now.memory_peak_bytes > run->result->memory_peak_bytes)
			run->result->memory_peak_bytes = now.memory_peak_bytes;
		if (now.processes_peak > run->result->processes_peak)
			run->result->processes_peak = now.processes_peak;
		if (now.memory_over && run->session)
			memory_over(run, now.memory_bytes, false);
		else if (now.memory_over)
			run_limit(run, LIMIT_MEMORY, now.memory_bytes, limits->memory_bytes, true);
		if (now.processes_over)
			run_limit(run, LIMIT_PROCESSES, limits->processes, limits->processes,
				  false);
	}
	if (run->session)
		return look_at_session(run, next);
	/* Not before all its processors together could have used up what is left. */
	left_us = limits->cpu_ms > run->result->cpu_ms
			  ? (limits->cpu_ms - run->result->cpu_ms) * 1000
			  : 0;
	if (left_us / processors(run) / 1000 < next)
		next = left_us / processors(run) / 1000;
	return next < LOOK_MIN_MS ? LOOK_MIN_MS : next;
}

static void on_sample(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	uint64_t next = look(run, false);

	(void)fd;
	(void)what;
	/* A session answers at any moment: what it would have to read again makes it late. */
	if (run->req->own_process && !run->trimmed && !run->session &&
	    clock_mono_us() - run->started_us > TRIM_AFTER_US) {
		run->trimmed = true;
		trim_memory();
	}
	if (!run->box.reaped)
		look_again(run, next);
}

void limits_memory(struct run *run)
{
	struct cgroup_usage u = {0};

	if (!run->box.reaped && !run->plan->sample_memory && look_at_cgroup(run, &u) &&
	    new_kills(run, &u))
		memory_over(run, u.memory_peak_bytes, true);
}

/* The kernel killed something of the box because its memory was used up. Part of a box is worth
 * nothing: all of it ends. */
static void on_memory_event(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;

	(void)fd;
	(void)what;
	cgroup_drain(run->cgroup);
	limits_memory(run);
}

static int start_sampling(struct run *run, struct pale_err *err)
{
	const struct plan *plan = run->plan;
	const struct usage_budget budget = {
		.cpu_us = plan->sample_cpu ? plan->limits.cpu_ms * 1000 : 0,
		.memory_bytes = plan->sample_memory ? plan->limits.memory_bytes : 0,
		.processes = plan->cgroup_limits.processes ? 0 : plan->limits.processes,
		.tmpfs = {run->box.data_fd},
		.shm = run->box.shm_fd,
		.ntmpfs = run->box.data_fd >= 0,
		.cpus = plan->affinity,
	};

	return usage_new(run->box.pid, run->box.command_pid, &budget, &run->usage, err);
}

int limits_start(struct run *run, struct pale_err *err)
{
	const struct policy_limits *limits = &run->plan->limits;
	struct timeval wall = {.tv_sec = (time_t)(limits->wall_ms / 1000),
			       .tv_usec = (suseconds_t)(limits->wall_ms % 1000) * 1000};
	uint64_t first = LOOK_FIRST_MS;
	short events = 0;
	int fd, r = 0;

	run->wall = event_new(run->base, -1, 0, on_wall, run);
	run->sample = event_new(run->base, -1, 0, on_sample, run);
	/* A session's is for each execution. */
	if (!run->wall || !run->sample || (!run->session && event_add(run->wall, &wall) < 0))
		return err_nomem(err, STAGE);
	if (run->plan->sample_memory || run->plan->sample_cpu ||
	    !run->plan->cgroup_limits.processes) {
		r = start_sampling(run, err);
		if (r < 0)
			return r;
		if (usage_first_ms(run->usage) < first)
			first = usage_first_ms(run->usage);
	}
	if (limits->cpu_ms / processors(run) < first)
		first = limits->cpu_ms / processors(run);
	look_again(run, first < LOOK_MIN_MS ? LOOK_MIN_MS : first);
	fd = run->cgroup ? cgroup_event_fd(run->cgroup, &events) : -1;
	if (fd >= 0)
		r = run_watch(run, fd, EV_READ, on_memory_event, err);
	return r;
}

uint64_t limits_memory_left(struct run *run)
{
	const uint64_t max = run->plan->limits.memory_bytes;
	uint64_t used = 0;
	struct usage_now now = {0};

	if (run->cgroup && run->plan->cgroup_limits.memory_bytes)
		used = cgroup_memory_kept(run->cgroup);
	else if (run->usage && usage_sample(run->usage, &now, NULL) == 0)
		used = now.memory_bytes;
	return used < max ? max - used : 0;
}

void limits_finish(struct run *run)
{
	(void)look(run, true);
	/* It was there, however short. */
	if (run->main_ended && run->result->processes_peak == 0)
		run->result->processes_peak = 1;
	/* Where nobody counted (or systemd has removed what did), init did, for what ended; it is
	 * of the box, so it can only be believed as far as it goes. */
	bool gone = run->plan->host.cgroup.kind == CGROUP_V2_SYSTEMD;

	if (run->plan->sample_cpu || gone) {
		uint64_t ms = (run->init_cpu_us + broker_cpu_us(run->broker)) / 1000;

		if (ms > run->result->cpu_ms)
			run->result->cpu_ms = ms;
	}
	if ((run->plan->sample_memory || gone) &&
	    run->init_max_rss_bytes > run->result->memory_peak_bytes)
		run->result->memory_peak_bytes = run->init_max_rss_bytes;
}
