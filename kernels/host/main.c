/* The kernel host: the first process of a session's kernel whose interpreter cannot play that part
 * itself. docs/kernel-protocol.md is what it speaks.
 *
 *     pale-kernel node|bash PROGRAM DRIVER
 *
 * It holds the interpreter as its child, takes what the supervisor sends and passes it on, and when
 * the interpreter ends it starts another: a session outlives its interpreter. It runs none of the
 * user's code, but as the same user, so what it does is a service to that code, not a protection
 * from it: who kills the host ends the box. Started by the box's first process from a sealed memfd;
 * static, against musl, to be small.
 *
 * Hostile, and harmless at worst to the session itself: what the interpreter reports, and the page
 * that the driver of node writes to. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

#define CHANNEL	  3
#define EARLY_MAX 20  /* interpreters in a row that do not live to be asked anything */
#define FORCE_MS  400 /* from a SIGKILL to that of the interpreter itself */
#define ROUND_MS  20

void die(const char *what, int error)
{
	fprintf(stderr, "pale-kernel: %s%s%s\n", what, error ? ": " : "",
		error ? strerror(error) : "");
	exit(error == ENOENT ? 127 : 126);
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void host_timer(struct host *h, unsigned ms)
{
	h->timer_ms = ms ? now_ms() + ms : 0;
}

/* ---- the interpreter: its pipes ---- */

void host_queue(struct host *h, const void *data, size_t len)
{
	char *bigger;

	if (h->commands < 0)
		return;
	if (h->sent) {
		memmove(h->queue, h->queue + h->sent, h->queued - h->sent);
		h->queued -= h->sent;
		h->sent = 0;
	}
	/* One message of full size is under way at most, and small ones. */
	if (h->queued + len > 2 * MESSAGE_MAX)
		return;
	bigger = realloc(h->queue, h->queued + len);
	if (!bigger)
		die("no memory for a message", 0);
	h->queue = bigger;
	memcpy(h->queue + h->queued, data, len);
	h->queued += len;
}

static void flush(struct host *h)
{
	while (h->commands >= 0 && h->sent < h->queued) {
		ssize_t n = write(h->commands, h->queue + h->sent, h->queued - h->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return; /* full, or it is about to be reaped */
		h->sent += (size_t)n;
	}
	free(h->queue);
	h->queue = NULL;
	h->queued = h->sent = 0;
}

/* Takes what it reports; false at the end. */
static bool take_reports(struct host *h)
{
	static char text[65536];
	ssize_t n = read(h->reports, text, sizeof(text));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n > 0)
		h->kind->report(h, text, (size_t)n);
	return n > 0;
}

static void close_pipes(struct host *h)
{
	if (h->commands >= 0)
		close(h->commands);
	if (h->reports >= 0)
		close(h->reports);
	h->commands = h->reports = -1;
	free(h->queue);
	h->queue = NULL;
	h->queued = h->sent = 0;
}

static void start_levers(struct host *h)
{
	for (unsigned i = 0; i < 2; i++)
		if (h->lever[i] <= 0)
			h->lever[i] = lever_start(h, i);
	if (h->lever[0] < 0 || h->lever[1] < 0)
		die("cannot start a process", errno);
}

static void start_interpreter(struct host *h)
{
	int commands[2], reports[2];
	pid_t parent = getpid();
	sigset_t none;

	page_disarm(h->page);
	start_levers(h);
	if (pipe2(commands, O_CLOEXEC) < 0 || pipe2(reports, O_CLOEXEC) < 0)
		die("cannot make a pipe", errno);
	h->up = false;
	h->interpreter = fork();
	if (h->interpreter < 0)
		die("cannot start a process", errno);
	if (h->interpreter == 0) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		signal(SIGPIPE, SIG_DFL);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		h->kind->exec(h, commands[0], reports[1]);
		h->page->exec_errno = errno;
		_exit(127);
	}
	setpgid(h->interpreter, h->interpreter);
	close(commands[0]);
	close(reports[1]);
	h->commands = commands[1];
	h->reports = reports[0];
	fcntl(h->commands, F_SETFL, O_NONBLOCK);
	fcntl(h->reports, F_SETFL, O_NONBLOCK);
	if (h->kind->started)
		h->kind->started(h);
}

/* ---- executions ---- */

static void take_message(struct host *h);

/* The execution that runs, or 0. */
static uint32_t running(struct host *h)
{
	if (h->running && h->kind->done && h->kind->done(h)) {
		h->running = 0;
		h->forced = false;
		host_timer(h, 0);
	}
	return h->running;
}

void host_done(struct host *h, enum done how, int status)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", status);
	channel_send(h, DONE, h->running, h->forced && how != ENDED ? INTERRUPTED : (int32_t)how,
		     text, "", 0);
	h->running = 0;
	h->forced = false;
	host_timer(h, 0);
}

void host_up(struct host *h, const char *banner)
{
	h->up = true;
	h->early = 0;
	if (!h->ready)
		channel_send(h, READY, 0, 1, h->kind->name, banner, strlen(banner));
	h->ready = true;
	if (h->returning) {
		h->returning = false;
		channel_send(h, BACK, h->back_id, h->back_status, "fresh", "", 0);
	}
	if (h->holding) {
		h->holding = false;
		take_message(h);
	}
}

static void execute(struct host *h)
{
	unsigned which = 1 - h->page->lever;

	/* In this order: see the lever. */
	h->page->lever = which;
	h->page->running = h->in.id;
	h->running = h->in.id;
	host_timer(h, 0);
	h->signalled = h->rounds = 0;
	h->forced = false;
	h->started_ticks = tree_now_ticks();
	tree_note_children(h);
	channel_send(h, STARTED, h->running, h->lever[which], "", h->kind->what,
		     h->in.value & 1 ? strlen(h->kind->what) : 0);
	if (h->note[0])
		channel_say(h, NOTE, h->running, h->note);
	h->note[0] = '\0';
	h->kind->execute(h, &h->in);
}

static void restart(struct host *h)
{
	close_pipes(h);
	h->running = h->request = 0;
	h->forced = false;
	host_timer(h, 0);
	tree_kill_all(h);
	h->interpreter = 0;
	h->returning = true;
	h->back_id = h->in.id;
	h->back_status = 0;
	h->note[0] = '\0';
	start_interpreter(h);
}

static void take_message(struct host *h)
{
	struct message *m = &h->in;

	switch (m->kind) {
	case EXECUTE:
		/* Node has told the end of the last one by itself. */
		if (h->kind->done)
			h->running = 0;
		if (h->running) {
			channel_say(h, ERROR, m->id, "another execution is under way");
			channel_send(h, DONE, m->id, FAILED, "", "", 0);
			break;
		}
		execute(h);
		break;
	case UNDO: channel_say(h, REFUSED, m->id, h->kind->what); break;
	case COMPLETE:
	case INSPECT:
		if (h->running && !h->kind->done) {
			channel_say(h, REFUSED, m->id, "an execution is under way");
			break;
		}
		h->request = m->id;
		h->request_kind = m->kind;
		h->kind->ask(h, m);
		break;
	case INPUT: h->kind->ask(h, m); break;
	case RESTART: restart(h); break;
	default: break;
	}
	message_free(m);
}

/* ---- how an interpreter ends ---- */

/* Its own doing, as against an end by the kernel or by somebody's force. */
static bool by_itself(int status)
{
	static const int forces[] = {SIGKILL, SIGSEGV, SIGBUS,	SIGILL, SIGFPE,
				     SIGABRT, SIGSYS,  SIGTRAP, SIGXCPU};

	for (size_t i = 0; i < sizeof(forces) / sizeof(*forces); i++)
		if (WIFSIGNALED(status) && WTERMSIG(status) == forces[i])
			return false;
	return true;
}

static void note_end(struct host *h, int status, const char *when)
{
	unsigned left = tree_left(h);
	char how[96], rest[64] = "";

	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "was killed by signal %d", WTERMSIG(status));
	else
		snprintf(how, sizeof(how), "ended with status %d (%s)", WEXITSTATUS(status),
			 h->kind->how_it_ends);
	if (left)
		snprintf(rest, sizeof(rest), "; %u process%s that it started still run%s", left,
			 left == 1 ? "" : "es", left == 1 ? "s" : "");
	snprintf(h->note, sizeof(h->note),
		 "the %s %s%s: this is a fresh one; variables, functions and the directory are as "
		 "at the start%s",
		 strcmp(h->kind->name, "bash") == 0 ? "shell" : "interpreter", how, when, rest);
}

static void interpreter_died(struct host *h, int status)
{
	bool itself = by_itself(status) && !h->forced, early = !h->up;
	int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

	if (h->page->exec_errno)
		die(h->argv[2], h->page->exec_errno);
	if (early && ++h->early > EARLY_MAX)
		die("the interpreter does not start", 0);
	/* What it said before. */
	while (h->reports >= 0 && take_reports(h))
		;
	close_pipes(h);
	if (!itself)
		tree_kill_all(h);
	if (h->request) {
		channel_say(h, REFUSED, h->request, "the interpreter ended meanwhile");
		h->request = 0;
	}
	if (running(h)) {
		h->returning = true;
		h->back_id = h->running;
		h->back_status = status;
		if (itself) {
			note_end(h, status, "");
			host_done(h, ENDED, code);
		}
		h->running = 0;
		h->forced = false;
		host_timer(h, 0);
	} else if (!h->returning && !early) {
		note_end(h, status, " between two executions");
	}
	start_interpreter(h);
}

/* The running execution has to end. Its children go first: a shell that waited for one survives. */
static void force(struct host *h)
{
	uint64_t ms = now_ms() - h->forced_ms;
	bool die_now = h->rounds == 0 && !h->signalled && h->kind->must_die(h);

	if (!running(h))
		return;
	if (die_now || ms >= FORCE_MS) {
		kill(h->interpreter, SIGKILL);
		host_timer(h, 0);
		return;
	}
	tree_signal(h, h->started_ticks, true, SIGKILL);
	h->kind->interrupt(h, h->rounds);
	h->rounds++;
	host_timer(h, ROUND_MS);
}

static void on_children(struct host *h)
{
	struct signalfd_siginfo info[8];
	bool died = false, demanded = false;
	int status, died_of = 0;
	pid_t pid;

	(void)!read(h->signal_fd, info, sizeof(info));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == h->interpreter) {
			died = true;
			died_of = status;
			h->interpreter = 0;
		}
		for (unsigned i = 0; i < 2; i++) {
			if (pid != h->lever[i])
				continue;
			h->lever[i] = 0;
			demanded |= i == h->page->lever && WIFSIGNALED(status) &&
				    WTERMSIG(status) == SIGKILL;
		}
	}
	if (demanded && running(h) && !h->forced) {
		h->forced = true;
		h->forced_ms = now_ms();
		h->rounds = 0;
	} else {
		demanded = false;
	}
	if (died) {
		interpreter_died(h, died_of);
		return;
	}
	start_levers(h);
	if (demanded)
		force(h);
}

static void on_events(struct host *h)
{
	uint64_t n;

	if (read(h->events, &n, sizeof(n)) != sizeof(n) || !running(h))
		return;
	/* Of the other lever, late: not for this execution. */
	if (!(h->page->lever ? n >> 32 : n & UINT32_MAX))
		return;
	h->signalled++;
	h->signalled_ticks = tree_now_ticks();
	if (h->forced)
		return;
	h->rounds = 0;
	h->kind->interrupt(h, h->rounds++);
}

static void on_timer(struct host *h)
{
	h->timer_ms = 0;
	if (!running(h))
		return;
	if (h->forced)
		force(h);
	else
		h->kind->interrupt(h, h->rounds++);
}

static int time_left_ms(const struct host *h)
{
	uint64_t now = now_ms();

	return !h->timer_ms ? -1 : h->timer_ms <= now ? 0 : (int)(h->timer_ms - now);
}

static void turn(struct host *h)
{
	struct pollfd fds[] = {
		{h->signal_fd, POLLIN, 0},
		{h->events, POLLIN, 0},
		{h->reports, POLLIN, 0},
		{h->queued ? h->commands : -1, POLLOUT, 0},
		/* What comes before the interpreter is up waits; but one message is taken, which
		 * may be RESTART. */
		{h->holding ? -1 : h->channel, POLLIN, 0},
	};
	int n = poll(fds, sizeof(fds) / sizeof(*fds), time_left_ms(h));

	if (n < 0 && errno != EINTR)
		die("poll", errno);
	if (n == 0)
		on_timer(h);
	if (n <= 0)
		return;
	if (fds[2].revents && !take_reports(h)) {
		close(h->reports);
		h->reports = -1;
	}
	if (fds[1].revents)
		on_events(h);
	/* An interpreter that is dead takes no message. */
	if (fds[0].revents) {
		on_children(h);
		return;
	}
	if (fds[4].revents && channel_receive(h)) {
		if (h->up || h->in.kind == RESTART)
			take_message(h);
		else
			h->holding = true;
	}
	if (h->queued)
		flush(h);
}

static int above_stdio(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 10);

	if (high < 0)
		die("cannot set up", errno);
	close(fd);
	return high;
}

static void set_up(struct host *h)
{
	socklen_t len = sizeof(int);
	sigset_t set;
	int type = 0;

	if (getsockopt(CHANNEL, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET)
		die("started by a session's box only: descriptor 3 is no kernel channel", 0);
	h->channel = above_stdio(CHANNEL);
	h->events = above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	h->page_fd = above_stdio(memfd_create("pale-page", MFD_CLOEXEC));
	if (ftruncate(h->page_fd, PAGE_BYTES) < 0)
		die("cannot set up", errno);
	h->page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, h->page_fd, 0);
	if (h->page == MAP_FAILED)
		die("cannot set up", errno);
	h->commands = h->reports = -1;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	h->signal_fd = above_stdio(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int main(int argc, char **argv)
{
	static const struct interpreter *const kinds[] = {&interpreter_node, &interpreter_bash};
	static struct host host;

	if (argc < 4)
		die("usage: pale-kernel node|bash PROGRAM DRIVER", 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(argv[1], kinds[i]->name) == 0)
			host.kind = kinds[i];
	if (!host.kind)
		die("it hosts node and bash", 0);
	host.argv = argv;
	set_up(&host);
	start_interpreter(&host);
	for (;;)
		turn(&host);
}
