/* Ending what a session runs: asked to, at a time-out, or where another limit was reached: see
 * session.h. In the supervisor, in its event loop; nothing here waits.
 *
 * A process that has to go gets a SIGINT, after a grace a SIGKILL, and a kernel that then does not
 * come back within SESSION_BACK_MS ends the box. What has ended and waits for its files is let be.
 */
#include <signal.h>

#include "base/clock.h"
#include "session/session_impl.h"

#define STAGE	"session"
#define BUSY_US 20000 /* of processor time between two looks: somebody works in the box */

const char *const session_cause_outcomes[] = {NULL,  "interrupted", "timeout",
					      "cpu", "output",	    "memory"};

static void kill_running(struct session *s)
{
	struct execution *x = s->running;

	s->stage = STAGE_KILLED;
	s->escalated = true;
	clock_start(s, &s->grace, SESSION_BACK_MS * 1000);
	if (x->pid > 1)
		session_signal(s, x->pid, SIGKILL);
}

void session_on_grace(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct pale_err err;

	(void)fd;
	(void)what;
	s->grace.runs = false;
	if (s->stage == STAGE_KILLED || s->request) {
		err_set(&err, PALE_E_SYSTEM, STAGE, 0,
			"the kernel did not come back within %d s: the box ends",
			SESSION_BACK_MS / 1000);
		session_fail(s, &err);
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
	session_not_ended(s, s->running->id);
}

/* A signal for it, and more after the grace. One that comes again while the grace is on asks for
 * as much as the stronger of the two. */
void session_end_running(struct session *s, enum cause cause, enum session_escalate escalate,
			 uint64_t grace_ms)
{
	if (s->stage == STAGE_KILLED || s->settling)
		return;
	if (s->cause == CAUSE_NONE || cause != CAUSE_INTERRUPT)
		s->cause = cause;
	s->escalate =
		s->stage == STAGE_SIGNALLED && s->escalate > escalate ? s->escalate : escalate;
	s->stage = STAGE_SIGNALLED;
	if (s->running->id)
		(void)!s->config.ops->log(s->config.arg, "exec.interrupt",
					  json_pack("{s:I, s:s}", "execution",
						    (json_int_t)s->running->id, "cause",
						    session_cause_outcomes[cause]));
	/* Before STARTED nobody could be told: it is, then. */
	if (s->running->pid > 1)
		session_signal(s, s->running->pid, SIGINT);
	clock_start(s, &s->grace, grace_ms * 1000);
}

void session_on_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	s->timeout.runs = false;
	if (s->running)
		session_end_running(s, CAUSE_TIMEOUT, ESCALATE_RESTART, s->config.grace_ms);
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
		session_end_running(s, CAUSE_CPU, ESCALATE_RESTART, s->config.grace_ms);
}

bool session_memory(struct session *s, bool killed)
{
	/* Files are being brought back, or looked at: that comes to an end. */
	if (s->settling || s->undoing)
		return true;
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

void session_check_output(struct session *s)
{
	struct execution *x = s->running;

	if (s->cause != CAUSE_OUTPUT && x->output_bytes[0] + x->output_bytes[1] + x->display_bytes >
						s->config.output_total_bytes)
		session_end_running(s, CAUSE_OUTPUT, ESCALATE_RESTART, s->config.grace_ms);
}
