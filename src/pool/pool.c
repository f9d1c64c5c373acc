/* A pool: see pool.h. A process with the caller's privileges and a single thread, which clones
 * nothing itself: it forks supervisors (supervise_run()), each of which makes its box and tells it
 * ready over a socket pair. Hostile: nothing of a box comes here but the words of its supervisor;
 * clients are its owner's, and a line of theirs is bounded. Whoever takes a box over is looked at
 * by the box's own door, to which the connection is handed with the request unread. */
#include "pool/pool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "pool/place.h"
#include "pool/zygotes.h"
#include "supervise/control.h"

#define STAGE	   "pool"
#define CLIENTS	   128
#define LINE_BYTES 8192
#define LINE_S	   10	/* for a client to say what it wants */
#define BUILDING   3	/* boxes at a time */
#define WARM_BOXES 4	/* that have run something already: such a box takes more memory */
#define FAILURES   8	/* boxes one after the other that do not get ready: the pool gives up */
#define CALM_MS	   5	/* after a box was taken, if others are ready: its first code comes first */
#define RECOVER_MS 1000 /* between two looks at all runs for those whose supervisors were lost */
#define PAUSE_MS   50	/* after a box that did not, and that much more after each further one */

enum slot_state { SLOT_NONE, SLOT_BUILDING, SLOT_READY };
enum warmth { COLD, WARMING /* it was told to */, WARM };

struct slot {
	enum slot_state state;
	enum warmth warmth;
	int sock; /* to its supervisor */
	pid_t pid;
	char id[AUDIT_ID_SIZE];
	uint64_t ready_us;
};

struct client {
	int fd;
	bool waits; /* for a box; its line is still in the socket */
	uint64_t since_us;
};

struct pool {
	const struct pool_request *req;
	int listener, dir;
	struct slot slots[POOL_SIZE_MAX];
	struct client clients[CLIENTS];
	size_t nclients;
	uint64_t claimed, failures;
	uint64_t again_us;   /* no box is begun before */
	uint64_t recover_us; /* the first box after this looks for lost runs */
	bool told, stop;
	struct zygotes zygotes;
	struct pale_err err; /* of the last box that did not get ready */
};

/* ---- boxes ---- */

/* What a supervisor says to the pool. */
struct pool_word {
	char id[AUDIT_ID_SIZE]; /* of a box that is ready; empty: it failed */
	bool warm;
	struct pale_err err;
};

static void say_ready(void *arg, const char *id, bool warm)
{
	const int *sock = arg;
	struct pool_word w = {.warm = warm};

	snprintf(w.id, sizeof(w.id), "%s", id);
	(void)!send(*sock, &w, sizeof(w), MSG_NOSIGNAL);
}

/* In the fork: one box, from its making to its end. */
static int supervise_box(struct pool *p, int sock, bool recovers)
{
	struct supervise_session session = {.held = say_ready, .held_fd = sock};
	struct supervise_request request = {
		.session = &session,
		.plan = (struct plan *)(uintptr_t)p->req->plan,
		.zygote = take_ptr(p->zygotes.now),
		.start = p->req->start,
		.start_arg = p->req->start_arg,
		.notes = p->req->notes,
		.in = -1,
		.out = -1,
		.err = -1,
		.control = -1,
		.keep_output = true,
		.recovered = !recovers,
		.own_process = true,
		.arg = &sock,
	};
	struct result result = {0};
	struct pool_word w = {0};

	close(p->listener);
	close(p->dir);
	for (size_t i = 0; i < p->nclients; i++)
		close(p->clients[i].fd);
	for (size_t i = 0; i < POOL_SIZE_MAX; i++)
		if (p->slots[i].state != SLOT_NONE)
			close(p->slots[i].sock);
	zygotes_done(&p->zygotes);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (supervise_run(&request, &result, &w.err) < 0)
		(void)!send(sock, &w, sizeof(w), MSG_NOSIGNAL | MSG_DONTWAIT);
	result_done(&result);
	return 1;
}

/* 1: in the supervisor, whose box has ended. */
static int make_box(struct pool *p, struct slot *slot, struct pale_err *err)
{
	uint64_t now = clock_mono_us();
	/* It costs each box as much as there are others. */
	bool recovers = now >= p->recover_us;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot make a socket");
	slot->pid = fork();
	if (slot->pid == 0) {
		close(pair[0]);
		return supervise_box(p, pair[1], recovers);
	}
	close(pair[1]);
	if (slot->pid < 0) {
		close(pair[0]);
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot fork a supervisor");
	}
	slot->sock = pair[0];
	slot->state = SLOT_BUILDING;
	if (recovers)
		p->recover_us = now + RECOVER_MS * 1000ULL;
	p->zygotes.forks++;
	return 0;
}

static void slot_free(struct slot *slot)
{
	close_fd(&slot->sock);
	*slot = (struct slot){.state = SLOT_NONE, .sock = -1};
}

static size_t count(const struct pool *p, enum slot_state state)
{
	size_t n = 0;

	for (unsigned i = 0; i < p->req->size; i++)
		n += p->slots[i].state == state;
	return n;
}

/* The box that has waited longest, of those between these two. */
static struct slot *oldest(struct pool *p, enum warmth least, enum warmth most)
{
	struct slot *found = NULL;

	for (unsigned i = 0; i < p->req->size; i++) {
		struct slot *s = &p->slots[i];

		if (s->state == SLOT_READY && s->warmth >= least && s->warmth <= most &&
		    (!found || s->ready_us < found->ready_us))
			found = s;
	}
	return found;
}

static unsigned count_warm(const struct pool *p, enum warmth least)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->req->size; i++)
		n += p->slots[i].warmth >= least;
	return n;
}

/* Those that will be taken next. */
static void warm_up(struct pool *p)
{
	for (unsigned n = count_warm(p, WARMING); n < WARM_BOXES; n++) {
		struct slot *found = oldest(p, COLD, COLD);

		if (!found)
			return;
		found->warmth = WARMING;
		(void)!fd_send(found->sock, "", 1, NULL, 0);
	}
}

static int refill(struct pool *p, struct pale_err *err)
{
	int r = 0;

	if (!zygotes_ready(&p->zygotes) || clock_mono_us() < p->again_us)
		return 0;
	for (unsigned i = 0; r == 0 && i < p->req->size && count(p, SLOT_BUILDING) < BUILDING; i++)
		if (p->slots[i].state == SLOT_NONE)
			r = make_box(p, &p->slots[i], err);
	return r;
}

static void hear_box(struct pool *p, struct slot *slot)
{
	struct pool_word w;
	ssize_t n = recv(slot->sock, &w, sizeof(w), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(w) && w.id[0] && slot->state == SLOT_BUILDING) {
		w.id[sizeof(w.id) - 1] = '\0';
		memcpy(slot->id, w.id, sizeof(slot->id));
		slot->state = SLOT_READY;
		slot->ready_us = clock_mono_us();
		p->failures = 0;
		return;
	}
	if (n == (ssize_t)sizeof(w) && w.warm && slot->state == SLOT_READY) {
		slot->warmth = WARM;
		return;
	}
	/* Its box failed, or ended while nobody had it. */
	if (slot->state == SLOT_BUILDING) {
		p->failures++;
		/* It may be the zygote that is dying, which is known only when it is dead. */
		p->again_us = clock_mono_us() + p->failures * PAUSE_MS * 1000ULL;
		if (n == (ssize_t)sizeof(w))
			p->err = w.err;
		else
			err_set(&p->err, PALE_E_SYSTEM, STAGE, 0,
				"a box of the pool ended before it was ready: `pale audit show "
				"last` "
				"says why");
	}
	slot_free(slot);
}

/* ---- clients ---- */

static void client_drop(struct pool *p, size_t i)
{
	close_fd(&p->clients[i].fd);
	p->clients[i] = p->clients[--p->nclients];
}

static void reply(int fd, const struct control_request *q, json_t *result, enum control_code code,
		  const struct pale_err *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT(65536);
	int r = result ? control_reply(&b, q->id, result) : control_error(&b, q->id, code, err);

	if (r == 0)
		(void)!send(fd, b.data, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Hands the connection over; its line is still unread. False: there is no box. */
static bool hand_over(struct pool *p, struct client *c)
{
	struct slot *slot;

	while ((slot = oldest(p, WARM, WARM)) || (slot = oldest(p, COLD, WARM))) {
		int r = fd_send_now(slot->sock, "", 1, &c->fd, 1);

		/* From now on it is not ours, also if it died. */
		slot_free(slot);
		if (r == 0) {
			uint64_t now = clock_mono_us();

			p->claimed++;
			if (p->again_us < now && count(p, SLOT_READY))
				p->again_us = now + CALM_MS * 1000ULL;
			return true;
		}
	}
	return false;
}

static json_t *show(const struct pool *p)
{
	return json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:i, s:b, s:s?}", "key", p->req->key,
			 "policy", p->req->name, "size", (int)p->req->size, "ready",
			 (json_int_t)count(p, SLOT_READY), "warm", (json_int_t)count_warm(p, WARM),
			 "building", (json_int_t)count(p, SLOT_BUILDING), "claimed",
			 (json_int_t)p->claimed, "pid", (int)getpid(), "forks",
			 p->zygotes.now != NULL, "no_forks",
			 p->zygotes.none ? p->zygotes.why.message : NULL);
}

/* Is it the owner, or root? A box's door looks closer. */
static bool is_owner(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

/* Looks at what it wants without taking it. True: it is done with. */
static bool serve(struct pool *p, struct client *c)
{
	_cleanup_request_ struct control_request q = {0};
	enum control_code code = CONTROL_FAILED;
	char line[LINE_BYTES], *newline;
	struct pale_err err;
	ssize_t n = recv(c->fd, line, sizeof(line), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0)
		return true;
	newline = memchr(line, '\n', (size_t)n);
	if (!newline)
		return n == (ssize_t)sizeof(line);
	if (control_parse(line, (size_t)(newline - line), &q, &code, &err) < 0) {
		reply(c->fd, &q, NULL, code, &err);
		return true;
	}
	if (strcmp(q.command, "pool.claim") == 0) {
		c->waits = true;
		return hand_over(p, c);
	}
	n = recv(c->fd, line, (size_t)(newline + 1 - line), MSG_DONTWAIT);
	if (strcmp(q.command, "pool.show") == 0) {
		reply(c->fd, &q, show(p), code, NULL);
	} else if (strcmp(q.command, "pool.stop") == 0) {
		p->stop = true;
		reply(c->fd, &q, show(p), code, NULL);
	} else {
		err_set(&err, PALE_E_USAGE, STAGE, 0,
			"there is no command %s; there are: pool.claim, pool.show, pool.stop",
			QUOTED(q.command));
		reply(c->fd, &q, NULL, CONTROL_UNKNOWN_COMMAND, &err);
	}
	return true;
}

static void on_knock(struct pool *p)
{
	for (;;) {
		int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			return;
		if (p->nclients == CLIENTS || !is_owner(fd)) {
			close(fd);
			continue;
		}
		p->clients[p->nclients++] = (struct client){.fd = fd, .since_us = clock_mono_us()};
		/* It mostly has said it already. */
		if (serve(p, &p->clients[p->nclients - 1]))
			client_drop(p, p->nclients - 1);
	}
}

/* ---- the loop ---- */

static volatile sig_atomic_t terminated;

static void on_term(int number)
{
	(void)number;
	terminated = 1;
}

static void turn(struct pool *p)
{
	struct pollfd fds[1 + POOL_SIZE_MAX + CLIENTS + 2] = {{p->listener, POLLIN, 0}}, *zygote;
	struct slot *slots[POOL_SIZE_MAX];
	size_t nslots = 0, nclients = p->nclients;
	uint64_t now = clock_mono_us();
	int pause = now < p->again_us ? (int)((p->again_us - now) / 1000) + 1 : 0;

	for (unsigned i = 0; i < p->req->size; i++)
		if (p->slots[i].state != SLOT_NONE) {
			slots[nslots] = &p->slots[i];
			fds[1 + nslots++] = (struct pollfd){p->slots[i].sock, POLLIN, 0};
		}
	for (size_t i = 0; i < nclients; i++)
		/* One that waits for a box has said it: only its end is of interest. */
		fds[1 + nslots + i] = (struct pollfd){p->clients[i].fd,
						      p->clients[i].waits ? POLLRDHUP : POLLIN, 0};
	zygote = fds + 1 + nslots + nclients;
	zygotes_fds(&p->zygotes, zygote);
	if (poll(fds, 1 + nslots + nclients + 2, pause ? pause : nclients ? 1000 : -1) < 0)
		return;
	if (zygotes_hear(&p->zygotes, zygote))
		p->failures = p->again_us = 0;
	for (size_t i = 0; i < nslots; i++)
		if (fds[1 + i].revents)
			hear_box(p, slots[i]);
	now = clock_mono_us();
	/* From the end: dropping one moves the last into its place. */
	for (size_t i = nclients; i-- > 0;) {
		struct client *c = &p->clients[i];
		short events = fds[1 + nslots + i].revents;

		if (c->waits ? (events & (POLLRDHUP | POLLHUP | POLLERR)) || hand_over(p, c)
			     : events && serve(p, c))
			client_drop(p, i);
		else if (!c->waits && now > c->since_us + LINE_S * 1000000ULL)
			client_drop(p, i);
	}
	if (fds[0].revents)
		on_knock(p);
}

static int run(struct pool *p, struct pale_err *err)
{
	while (!p->stop && !terminated) {
		int r;

		zygotes_tend(&p->zygotes);
		r = refill(p, err);
		if (r != 0)
			return r;
		turn(p);
		warm_up(p);
		if (!p->told && count(p, SLOT_READY) == p->req->size &&
		    count_warm(p, WARM) >=
			    (p->req->size < WARM_BOXES ? p->req->size : WARM_BOXES)) {
			p->told = true;
			p->req->ready(p->req->arg);
		}
		if (p->failures >= (p->told ? FAILURES : 1)) {
			*err = p->err;
			return -(int)err->code;
		}
	}
	return 0;
}

int pool_run(const struct pool_request *req, struct pale_err *err)
{
	struct pool *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_nomem(err, STAGE);
	p->req = req;
	p->zygotes.plan = req->plan;
	p->listener = pool_listen(req->key, &p->dir, err);
	if (p->listener < 0) {
		r = p->listener;
		free(p);
		return r;
	}
	/* Its supervisors end when they end; nobody asks how. */
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
	r = run(p, err);
	if (r == 1)
		return r;
	pool_unlisten(p->dir, req->key);
	close(p->listener);
	close(p->dir);
	zygotes_done(&p->zygotes);
	/* The boxes that nobody has taken end with their sockets. */
	for (size_t i = 0; i < POOL_SIZE_MAX; i++)
		if (p->slots[i].state != SLOT_NONE)
			slot_free(&p->slots[i]);
	for (size_t i = 0; i < p->nclients; i++)
		close(p->clients[i].fd);
	free(p);
	return r;
}
