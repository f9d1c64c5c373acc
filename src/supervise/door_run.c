/* What the door and the rules behind it need of a run: its state, its log, its broker. In the
 * supervisor; everything that is told of the box here is the supervisor's own knowledge but for the
 * command's arguments, which are the caller's and may be any bytes. */
#include "supervise/door_files.h"

#include <string.h>

#include "base/clock.h"
#include "supervise/run.h"

#define STAGE	     "supervise"
#define MEMORY_SPARE (1u << 20) /* that the box is left when its owner writes into it */

static int log_change(void *arg, json_t *body, struct pale_err *err)
{
	struct run *run = arg;
	int r = audit_append(run->log, STAGE, "network.changed", body, err);

	/* What cannot be put on record ends the box, as everywhere. */
	if (r < 0)
		run_fail(run, err);
	return r;
}

static int send_change(void *arg, int memfd, struct pale_err *err)
{
	struct run *run = arg;

	return broker_change(run->broker, memfd, err);
}

static void in_force(void *arg, const struct policy_network *network)
{
	struct run *run = arg;

	broker_changed(run->broker, network->nrules);
	if (run->notify)
		notify_set_network(run->notify, network);
}

static void lost(void *arg, const struct pale_err *err)
{
	run_fail(arg, err);
}

static enum door_state state_of(void *arg)
{
	const struct run *run = arg;

	return run->decided || run->box.reaped ? DOOR_ENDING : run->held ? DOOR_HELD : DOOR_RUNNING;
}

static void refused(void *arg, json_t *body)
{
	run_log(arg, STAGE, "door.refused", body);
}

static void destroy(void *arg)
{
	run_end(arg, OUTCOME_DESTROYED);
}

static json_t *limits_of(const struct policy_limits *l)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "wall_ms", (json_int_t)l->wall_ms,
			 "cpu_ms", (json_int_t)l->cpu_ms, "cpus_milli", (json_int_t)l->cpus_milli,
			 "memory_bytes", (json_int_t)l->memory_bytes, "processes",
			 (json_int_t)l->processes, "disk_bytes", (json_int_t)l->disk_bytes,
			 "output_total_bytes", (json_int_t)l->output_total_bytes);
}

static json_t *usage_of(const struct run *run)
{
	const struct result *r = run->result;

	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I}", "wall_ms",
		run->box.reaped ? (json_int_t)r->wall_ms
				: (json_int_t)((clock_mono_us() - run->started_us) / 1000),
		"cpu_ms", (json_int_t)r->cpu_ms, "memory_peak_bytes",
		(json_int_t)r->memory_peak_bytes, "processes_peak", (json_int_t)r->processes_peak,
		"disk_bytes", (json_int_t)r->disk_bytes, "output_bytes",
		(json_int_t)(r->output_bytes[OUTPUT_STDOUT] + r->output_bytes[OUTPUT_STDERR]));
}

static json_t *info(void *arg)
{
	const struct run *run = arg;
	json_t *command = json_array();

	/* As much as says what it is: the log has it whole. */
	for (char **a = run->plan->command.argv; command && *a && json_array_size(command) < 64;
	     a++)
		json_array_append_new(command, audit_text(*a, strlen(*a), 1024));
	return json_pack("{s:s, s:O?, s:o?, s:i, s:i, s:s, s:s, s:o, s:o, s:o*}", "id",
			 audit_id(run->log), "policy", run->policy_name, "command", command, "pid",
			 run->box.pid, "supervisor_pid", getpid(), "started", run->started, "state",
			 state_of(arg) == DOOR_ENDING ? "ending" : "running", "limits",
			 limits_of(&run->plan->limits), "usage", usage_of(run), "session",
			 run->session ? session_show(run->session, false) : NULL);
}

static bool has_room(void *arg, uint64_t bytes)
{
	return limits_memory_left(arg) >= bytes + MEMORY_SPARE;
}

static int log_files(void *arg, json_t *body, struct pale_err *err)
{
	struct run *run = arg;
	int r = audit_append(run->log, "files", "files.changed", body, err);

	if (r < 0)
		run_fail(run, err);
	return r;
}

static void files_free(void *arg)
{
	struct run *run = arg;

	if (run->door)
		door_again(run->door);
}

static int open_inside(struct run *run, struct pale_err *err)
{
	const struct inside_config config = {
		.base = run->base,
		.plan = run->plan,
		.box = &run->box,
		.cgroup = run->cgroup,
		.done = door_files_done,
		.kept = session_files_kept,
		.free = files_free,
		.arg = run,
	};

	return inside_new(&config, &run->inside, err);
}

int door_open(struct run *run, struct pale_err *err)
{
	static const struct live_ops ops = {log_change, send_change, in_force, lost};
	struct door_config config = {
		.base = run->base,
		.id = audit_id(run->log),
		.run_fd = audit_dir_fd(run->log),
		.state = state_of,
		.info = info,
		.refused = refused,
		.destroy = destroy,
		.claim = session_claimed,
		.arg = run,
	};
	int r = run->plan->network ? live_new(run->base, run->plan->network, run->plan->intercepts,
					      &ops, run, &run->live, err)
				   : 0;

	if (r == 0)
		r = open_inside(run, err);
	config.files = (struct door_files){
		.inside = run->inside,
		.plan = run->plan,
		.room = has_room,
		.log = log_files,
		.arg = run,
	};
	config.live = run->live;
	config.session = run->session;
	clock_wall_text(run->started);
	return r < 0 ? r : door_new(&config, &run->door, err);
}

void door_close(struct run *run)
{
	if (run->door)
		door_shut(run->door);
	/* Before what the box left is looked at: nothing is to write there any more. */
	inside_free(run->inside);
	run->inside = NULL;
}
