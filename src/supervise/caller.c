/* The one outside who asked for the run: the signals of a command in a terminal, or the commands
 * that a program sends through the library.
 *
 * In the supervisor. Trusted, but it may go at any moment, and may leave the output unread. */
#include <event2/event.h>
#include <signal.h>
#include <sys/socket.h>

#include "supervise/run.h"

#define STAGE	 "supervise"
/* Asked to end (SIGTERM) or left alone (SIGHUP), the command has so long for its own clean-up. */
#define GRACE_MS 5000

/* The caller, or who uses the terminal, wants it over. When the box is dead, it is its output that
 * is still being passed on, to a reader who may never take it. */
static void end(struct run *run, enum outcome outcome)
{
	run_end(run, outcome);
	run->unwanted = true;
	if (run->box.reaped)
		run_give_up_output(run);
}

/* An interpreter that lives on is interrupted at what it does, as often as it likes. */
static void pass_interrupt(struct run *run)
{
	run_log(run, STAGE, "interrupt", json_pack("{ss}", "signal", "SIGINT"));
	/* Where it cannot be told, the box is about to end by itself. */
	if (!run->box.reaped)
		(void)!isolation_signal(&run->box, SIGINT);
}

/* The first one is the command's to handle; with the second, or where the command does not end
 * within its grace, the box is ended. A Ctrl-C has no grace: whoever types it can type it again. */
static void on_interrupt(evutil_socket_t signal_number, short what, void *arg)
{
	struct run *run = arg;
	unsigned ms = run->req->grace_ms ? run->req->grace_ms : GRACE_MS;
	const struct timeval grace = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	(void)what;
	if (signal_number == SIGINT && run->req->interrupts_only) {
		pass_interrupt(run);
		return;
	}
	run->interrupts++;
	run_log(run, STAGE, "interrupt",
		json_pack("{ss sI}", "signal",
			  signal_number == SIGINT   ? "SIGINT"
			  : signal_number == SIGHUP ? "SIGHUP"
						    : "SIGTERM",
			  "count", (json_int_t)run->interrupts));
	if (run->interrupts > 1 || isolation_signal(&run->box, (int)signal_number) < 0)
		end(run, OUTCOME_INTERRUPTED);
	else if (signal_number != SIGINT)
		event_add(run->grace, &grace);
}

static void on_grace_over(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	end(arg, OUTCOME_INTERRUPTED);
}

static void on_resize(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;

	(void)fd;
	(void)what;
	terminal_copy_size(&run->terminal, streams_tty(run->streams));
}

/* Ctrl-Z stops all of the box and then us: nobody would watch its limits meanwhile. */
static void on_stop(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;

	(void)fd;
	(void)what;
	if (!run->box.reaped && isolation_pause(&run->box, true, false) < 0)
		return;
	kill(getpid(), SIGSTOP);
	if (!run->box.reaped)
		(void)!isolation_pause(&run->box, false, false);
}

static int watch_signals(struct run *run, struct pale_err *err)
{
	static const struct {
		int number;
		event_callback_fn fn;
	} signals[] = {
		{SIGINT, on_interrupt}, {SIGTERM, on_interrupt}, {SIGHUP, on_interrupt},
		{SIGWINCH, on_resize},	{SIGTSTP, on_stop},
	};
	int r = 0;

	if (!run->req->handle_signals)
		return 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(signals); i++) {
		struct sigaction now;

		/* What the caller made us ignore (nohup, a background job) stays ignored. */
		if (sigaction(signals[i].number, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			continue;
		r = run_watch(run, signals[i].number, EV_SIGNAL, signals[i].fn, err);
	}
	return r;
}

static void on_command(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;
	struct supervise_command c;
	ssize_t n = recv(fd, &c, sizeof(c), MSG_DONTWAIT);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* Without it the box cannot be reached, and without its caller it is not wanted. */
	if (n != (ssize_t)sizeof(c))
		run_unwatch(run, fd);
	if (n != (ssize_t)sizeof(c) || c.kind == SUPERVISE_DESTROY ||
	    (c.kind == SUPERVISE_SIGNAL && !run->box.reaped &&
	     isolation_signal(&run->box, c.value) < 0))
		end(run, OUTCOME_DESTROYED);
	else if (c.kind == SUPERVISE_RESIZE)
		terminal_resize(streams_tty(run->streams), c.rows, c.columns);
}

/* The control socket alone would not tell: a process that the caller forked may hold a copy of it.
 */
static void on_caller_end(evutil_socket_t fd, short what, void *arg)
{
	struct run *run = arg;

	(void)what;
	run_unwatch(run, fd);
	end(run, OUTCOME_DESTROYED);
}

int caller_watch(struct run *run, struct pale_err *err)
{
	int r = 0;

	run->grace = event_new(run->base, -1, 0, on_grace_over, run);
	if (!run->grace)
		return err_nomem(err, STAGE);
	if (run->req->control >= 0)
		r = run_watch(run, run->req->control, EV_READ, on_command, err);
	if (r == 0 && run->req->caller_pidfd > 0)
		r = run_watch(run, run->req->caller_pidfd, EV_READ, on_caller_end, err);
	return r == 0 ? watch_signals(run, err) : r;
}
