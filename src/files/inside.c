/* Files of a running box: see inside.h. In the supervisor, in its event loop.
 *
 * Hostile: what a worker says, which reads what the box made: an answer has one size, and its
 * numbers are checked. One that does not answer in time, or dies, is ended, and the next request
 * has another. */
#include "files/inside.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/inside_worker.h"

#define STAGE	  "files"
#define REQUEST_S 10
#define LOOK_S	  3 /* of the keeper: an execution waits meanwhile */
#define BACK_S	  12
#define IDLE_S	  10
#define DYING_MAX 8    /* that were killed and hang in the kernel: then there are no more */
#define END_MS	  1000 /* until a killed one is gone, when the box is over */

enum which { READER, WRITER, KEEPER, WORKERS };

struct worker {
	TAILQ_ENTRY(worker) entry; /* when it is dying */
	struct inside *in;
	enum which which;
	pid_t pid;
	int pidfd, socket, memory;
	bool grouped; /* in the box's group, and, where that is of version 2, frozen with it */
	bool ready;   /* it has said hello */
	bool busy;
	struct inside_request q;
	void *client;
	struct event *readable, *timer, *ended;
};

struct inside {
	struct inside_config config;
	struct worker *at[WORKERS];
	TAILQ_HEAD(, worker) dying;
	size_t ndying;
	bool frozen;
	uint64_t numbers; /* of requests */
};

/* --- workers -----------------------------------------------------------------------------------
 */

static void worker_free(struct worker *w)
{
	struct event *events[] = {w->readable, w->timer, w->ended};

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (events[i])
			event_free(events[i]);
	close_fd(&w->pidfd);
	close_fd(&w->socket);
	close_fd(&w->memory);
	free(w);
}

static void on_ended(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;

	(void)fd;
	(void)what;
	if (waitpid(w->pid, NULL, WNOHANG) == 0)
		return;
	TAILQ_REMOVE(&w->in->dying, w, entry);
	w->in->ndying--;
	worker_free(w);
}

/* The request under way has ended. */
static void answer(struct worker *w, const struct inside_answer *a, const char *data,
		   const struct pale_err *err)
{
	static const struct timeval idle = {.tv_sec = IDLE_S};
	struct inside *in = w->in;
	void *client = w->client;
	/* Whoever is told may ask again. */
	struct inside_request q = w->q;
	bool asked = w->busy;

	w->busy = false;
	w->client = NULL;
	if (w->which == KEEPER) {
		event_del(w->timer);
		if (asked)
			in->config.kept(in->config.arg, &q, a, data, err);
		return;
	}
	event_add(w->timer, &idle);
	if (client)
		in->config.done(client, &q, a, data, err);
	if (asked)
		in->config.free(in->config.arg);
}

/* It is no worker any more; its request, if it had one, ends with err. */
static void dismiss(struct worker *w, const struct pale_err *err)
{
	struct inside *in = w->in;

	in->at[w->which] = NULL;
	event_del(w->readable);
	syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
	TAILQ_INSERT_TAIL(&in->dying, w, entry);
	in->ndying++;
	event_add(w->ended, NULL);
	if (err && w->busy)
		answer(w, NULL, NULL, err);
	event_del(w->timer);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;
	struct pale_err err;

	(void)fd;
	(void)what;
	if (w->which == KEEPER)
		err_set(&err, PALE_E_SYSTEM, STAGE, ETIMEDOUT,
			"what looks after the box's files did not answer within %d s",
			w->q.op == INSIDE_BACK ? BACK_S : LOOK_S);
	else
		err_set(&err, PALE_E_SYSTEM, STAGE, ETIMEDOUT, "%s: no answer within %d s",
			QUOTED(w->q.path), REQUEST_S);
	dismiss(w, &err);
}

/* --- answers -----------------------------------------------------------------------------------
 */

static bool keeper_sensible(const struct inside_request *q, const struct inside_answer *a)
{
	return a->error >= 0 && a->error < 4096 && a->why < 4096 &&
	       a->length <= (q->op == INSIDE_KEEP ? 0 : INSIDE_DATA_MAX) &&
	       a->count <= INSIDE_CHANGES_MAX && a->count <= a->total && a->back <= a->total &&
	       a->total <= INT32_MAX && a->failed <= INT32_MAX;
}

bool inside_sensible(const struct inside_request *q, const struct inside_answer *a)
{
	if (q->op >= INSIDE_KEEP)
		return keeper_sensible(q, a);

	uint32_t most = q->op == INSIDE_LIST   ? INSIDE_DATA_MAX
			: q->op == INSIDE_STAT ? INSIDE_PATH_MAX
					       : q->length;

	return a->error >= 0 && a->error < 4096 && a->length <= most && a->more <= 1 &&
	       (q->op != INSIDE_LIST || a->count <= q->length);
}

/* A copy, which the worker cannot change any more. NULL: no memory, or it is not there. */
static char *take_data(const struct worker *w, const struct inside_answer *a)
{
	bool ours = w->q.op == INSIDE_WRITE || w->q.op == INSIDE_LINK;
	size_t len = ours || a->error ? 0 : a->length;
	char *data = malloc(len + 1);

	if (!data || fd_pread_full(w->memory, data, len, 0) != (ssize_t)len) {
		free(data);
		return NULL;
	}
	data[len] = '\0';
	return data;
}

static int take_answer(struct worker *w, const void *packet, size_t n, struct pale_err *err)
{
	struct inside_reply reply;
	const struct inside_answer *a = &reply.answer;
	_cleanup_free_ char *data = NULL;

	if (n == sizeof(reply))
		memcpy(&reply, packet, sizeof(reply));
	if (n != sizeof(reply) || !w->busy || reply.number != w->q.number)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "what reads the box's files says what makes no sense");
	if (!inside_sensible(&w->q, a))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "what reads the box's files answers what makes no sense");
	data = take_data(w, a);
	if (!data)
		return err_nomem(err, STAGE);
	/* The last thing that it does. */
	if (w->q.op == INSIDE_BACK)
		dismiss(w, NULL);
	answer(w, a, data, NULL);
	return 0;
}

static int take_hello(struct worker *w, const void *packet, size_t n, struct pale_err *err)
{
	struct inside_hello hello;

	if (n != sizeof(hello))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "what reads the box's files ended while it started");
	memcpy(&hello, packet, sizeof(hello));
	w->ready = hello.err.code == PALE_OK;
	if (w->ready)
		return 0;
	/* It has only just entered, but it may have been met there. */
	hello.err.message[sizeof(hello.err.message) - 1] = '\0';
	hello.err.stage[sizeof(hello.err.stage) - 1] = '\0';
	if (hello.err.code <= PALE_OK || hello.err.code > PALE_E_CONFLICT)
		hello.err.code = PALE_E_SYSTEM;
	*err = hello.err;
	return -(int)err->code;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	union {
		struct inside_hello hello;
		struct inside_reply reply;
	} packet;
	struct worker *w = arg;
	struct pale_err err;
	ssize_t n = recv(fd, &packet, sizeof(packet), MSG_DONTWAIT);
	int r;

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		r = err_set(&err, PALE_E_SYSTEM, STAGE, 0,
			    "what reads the box's files ended unexpectedly");
	else if (!w->ready)
		r = take_hello(w, &packet, (size_t)n, &err);
	else
		r = take_answer(w, &packet, (size_t)n, &err);
	if (r < 0)
		dismiss(w, &err);
}

/* --- starting one ------------------------------------------------------------------------------
 */

static pid_t clone_worker(int cgroup_fd, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0ULL),
		.cgroup = (__u64)(cgroup_fd >= 0 ? cgroup_fd : 0),
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static int make_memory(struct worker *w)
{
	w->memory = memfd_create("pale-files", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (w->memory < 0 || ftruncate(w->memory, INSIDE_DATA_MAX) < 0 ||
	    fcntl(w->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	return 0;
}

static int make_events(struct worker *w)
{
	struct event_base *base = w->in->config.base;

	w->readable = event_new(base, w->socket, EV_READ | EV_PERSIST, on_readable, w);
	w->timer = event_new(base, -1, 0, on_timer, w);
	w->ended = event_new(base, w->pidfd, EV_READ | EV_PERSIST, on_ended, w);
	return w->readable && w->timer && w->ended && event_add(w->readable, NULL) == 0 ? 0
											: -ENOMEM;
}

/* In the box's group where that can be had: not if the box has as many processes as it may, nor
 * where its owner may not put one there. */
static int clone_it(struct worker *w, int peer)
{
	struct inside *in = w->in;
	const struct cgroup *group = w->which == WRITER ? in->config.cgroup : NULL;
	_cleanup_close_ int into = group ? cgroup_later_fd(group) : -1;
	struct inside_worker it = {
		.box = in->config.box,
		.plan = in->config.plan,
		.join = group,
		.socket = peer,
		.memory = w->memory,
		.parent = getpid(),
		.keeper = w->which == KEEPER,
	};

	w->pid = clone_worker(into, &w->pidfd);
	w->grouped = into >= 0 && w->pid >= 0;
	if (w->pid < 0 && into >= 0)
		w->pid = clone_worker(-1, &w->pidfd);
	if (w->pid == 0)
		inside_worker(&it);
	return w->pid < 0 ? -errno : 0;
}

static int start(struct inside *in, enum which which, struct pale_err *err)
{
	struct worker *w = calloc(1, sizeof(*w));
	_cleanup_close_ int peer = -1;
	int pair[2], r;

	if (!w)
		return err_nomem(err, STAGE);
	*w = (struct worker){.in = in, .which = which, .pidfd = -1, .socket = -1, .memory = -1};
	r = make_memory(w);
	if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		r = -errno;
	if (r == 0) {
		w->socket = pair[0];
		peer = pair[1];
		r = clone_it(w, peer);
	}
	if (r < 0) {
		worker_free(w);
		return err_set(err, PALE_E_SYSTEM, STAGE, -r,
			       "cannot start what reads the box's files");
	}
	in->at[which] = w;
	r = make_events(w);
	if (r < 0) {
		in->at[which] = NULL;
		kill(w->pid, SIGKILL);
		while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
			;
		worker_free(w);
		return err_nomem(err, STAGE);
	}
	return 0;
}

/* --- asking ------------------------------------------------------------------------------------
 */

static enum which which_for(enum inside_op op)
{
	return inside_writes(op) ? WRITER : READER;
}

bool inside_busy(const struct inside *in, enum inside_op op)
{
	const struct worker *w = in->at[which_for(op)];

	return w && w->busy;
}

/* There is room for it: the worker has taken all that came before. doing: for the error. */
static int send_request(struct worker *w, const struct inside_request *q, const char *doing,
			struct pale_err *err)
{
	int r;

	w->q = *q;
	w->q.number = ++w->in->numbers;
	r = fd_send_now(w->socket, &w->q, sizeof(w->q), NULL, 0);
	if (r < 0) {
		err_set(err, PALE_E_SYSTEM, STAGE, -r, "%s", doing);
		dismiss(w, NULL);
		return -(int)err->code;
	}
	w->busy = true;
	return 0;
}

int inside_ask(struct inside *in, const struct inside_request *q, const void *data, void *client,
	       struct pale_err *err)
{
	static const struct timeval limit = {.tv_sec = REQUEST_S};
	enum which which = which_for(q->op);
	struct worker *w;
	int r;

	if (which == WRITER && in->frozen)
		return err_set(err, PALE_E_CONFLICT, STAGE, 0,
			       "the box is frozen, and what is written counts as its own: thaw it "
			       "first");
	if (in->ndying >= DYING_MAX)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "%d that read the box's files hang in the kernel already",
			       DYING_MAX);
	/* It may have been killed, which is not heard of yet. */
	if (in->at[which] && poll(&(struct pollfd){in->at[which]->pidfd, POLLIN, 0}, 1, 0) == 1)
		dismiss(in->at[which], NULL);
	r = in->at[which] ? 0 : start(in, which, err);
	if (r < 0)
		return r;
	w = in->at[which];
	if (data && pwrite(w->memory, data, q->length, 0) != (ssize_t)q->length)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "handing over what is written");
	r = send_request(w, q, "asking what reads the box's files", err);
	if (r < 0)
		return r;
	w->client = client;
	event_add(w->timer, &limit);
	return 0;
}

bool inside_keeps(const struct inside *in)
{
	return in->at[KEEPER];
}

/* Not while it stands with the box's group: that is not its doing. */
static void time_keeper(struct worker *w)
{
	struct timeval limit = {.tv_sec = w->q.op == INSIDE_BACK ? BACK_S : LOOK_S};

	if (w->grouped && w->in->frozen)
		event_del(w->timer);
	else
		event_add(w->timer, &limit);
}

/* Nobody asks while it is asked, unless nobody waits for that answer any more; and what it has seen
 * by then is not what is asked about. */
static int dismiss_busy(struct worker *w, struct pale_err *err)
{
	err_set(err, PALE_E_SYSTEM, STAGE, EBUSY,
		"what looks after the box's files was still asked for something else");
	dismiss(w, err);
	return -(int)err->code;
}

int inside_keep(struct inside *in, const struct inside_request *q, struct pale_err *err)
{
	struct worker *w = in->at[KEEPER];
	int r;

	if (w && w->busy)
		return dismiss_busy(w, err);
	if (in->ndying >= DYING_MAX)
		return err_set(err, PALE_E_SYSTEM, STAGE, 0,
			       "%d that looked after the box's files hang in the kernel already",
			       DYING_MAX);
	r = w ? 0 : start(in, KEEPER, err);
	if (r < 0)
		return r;
	w = in->at[KEEPER];
	/* What it writes counts as the box's from now on, where that can be had. Not by a
	 * descriptor of its own: that could move anybody's processes there. */
	if (q->op == INSIDE_BACK && in->config.cgroup)
		w->grouped = cgroup_take_beside(in->config.cgroup, w->pid) == 0;
	r = send_request(w, q, "asking what looks after the box's files", err);
	if (r < 0)
		return r;
	time_keeper(w);
	return 0;
}

void inside_forget(struct inside *in, void *client)
{
	for (size_t i = 0; i < WORKERS; i++)
		if (in->at[i] && in->at[i]->client == client)
			in->at[i]->client = NULL;
}

void inside_frozen(struct inside *in, bool frozen)
{
	struct worker *w = in->at[WRITER], *keeper = in->at[KEEPER];
	struct pale_err err;

	in->frozen = frozen && in->config.cgroup && cgroup_holds_later(in->config.cgroup);
	/* It brings back as the box does everything: it stands, and goes on. */
	if (keeper && keeper->busy && keeper->grouped)
		time_keeper(keeper);
	if (!in->frozen || !w || !w->grouped)
		return;
	err_set(&err, PALE_E_CONFLICT, STAGE, 0, "the box was frozen meanwhile");
	dismiss(w, &err);
}

/* --- its life ----------------------------------------------------------------------------------
 */

int inside_new(const struct inside_config *config, struct inside **ret, struct pale_err *err)
{
	struct inside *in = calloc(1, sizeof(*in));

	if (!in)
		return err_nomem(err, STAGE);
	in->config = *config;
	TAILQ_INIT(&in->dying);
	*ret = in;
	return 0;
}

void inside_free(struct inside *in)
{
	uint64_t until = clock_mono_us() + END_MS * 1000;
	struct worker *w;

	if (!in)
		return;
	for (size_t i = 0; i < WORKERS; i++)
		if (in->at[i])
			dismiss(in->at[i], NULL);
	while ((w = TAILQ_FIRST(&in->dying))) {
		struct pollfd p = {w->pidfd, POLLIN, 0};
		uint64_t now = clock_mono_us();

		/* One that hangs is init's to reap, when we are gone. */
		if (now < until)
			(void)!poll(&p, 1, (int)((until - now) / 1000) + 1);
		waitpid(w->pid, NULL, WNOHANG);
		TAILQ_REMOVE(&in->dying, w, entry);
		worker_free(w);
	}
	free(in);
}
