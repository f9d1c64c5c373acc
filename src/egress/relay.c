/* Bytes both ways: see relay.h.
 *
 * Runs in the broker. The bytes are hostile and nobody looks at them. Each direction reads into one
 * shared buffer and writes at once, which is the cheapest for little; as soon as a read fills the
 * buffer, the direction goes over to splice(2) through a pipe, which copies nothing. What could not
 * be written is kept, in the pipe or in a bounded copy, and nothing more is read until it is gone:
 * so a slow side holds up the fast one, and memory stays bounded. Pipes are lent only while there
 * is something in them, from a pool with a cap; without one a direction goes on copying. */
#include "egress/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COPY_BYTES  65536
#define PIPE_BYTES  (1u << 20) /* asked for; the host may allow less */
#define PIPES_MAX   128
#define PIPES_SPARE 8
#define ROUNDS	    8 /* of one direction before others get their turn */

struct pipe {
	int fds[2]; /* -1: none */
};

static struct pipe spare[PIPES_SPARE];
static size_t nspare, npipes;

struct relay;

struct direction {
	struct relay *r;
	int from, to; /* borrowed from the relay */
	bool outwards;
	struct event *readable, *writable;
	struct pipe pipe;
	size_t in_pipe, spliced_last;
	char *held;
	size_t held_at, held_len;
	bool bulk, eof, shut;
};

struct relay {
	struct flow *f;
	struct dial *dial;
	int upstream;
	struct direction ways[2]; /* out, in */
	struct event *pause;
	bool paused;
};

/* ---------------------------------------------------------------- pipes */

static bool pipe_lend(struct pipe *p)
{
	if (p->fds[0] >= 0)
		return true;
	if (nspare) {
		*p = spare[--nspare];
		return true;
	}
	if (npipes >= PIPES_MAX || pipe2(p->fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		*p = (struct pipe){{-1, -1}};
		return false;
	}
	(void)fcntl(p->fds[0], F_SETPIPE_SZ, PIPE_BYTES);
	npipes++;
	return true;
}

static void pipe_return(struct pipe *p, bool empty)
{
	if (p->fds[0] < 0)
		return;
	if (empty && nspare < PIPES_SPARE) {
		spare[nspare++] = *p;
	} else {
		close(p->fds[0]);
		close(p->fds[1]);
		npipes--;
	}
	*p = (struct pipe){{-1, -1}};
}

void relay_stop(void)
{
	while (nspare) {
		struct pipe p = spare[--nspare];

		close(p.fds[0]);
		close(p.fds[1]);
		npipes--;
	}
}

/* ---------------------------------------------------------------- the end */

static void relay_free(struct relay *r)
{
	dial_cancel(r->dial);
	for (int i = 0; i < 2; i++) {
		struct direction *w = &r->ways[i];

		if (w->readable)
			event_free(w->readable);
		if (w->writable)
			event_free(w->writable);
		pipe_return(&w->pipe, w->in_pipe == 0);
		free(w->held);
	}
	if (r->pause)
		event_free(r->pause);
	r->f->carrier = NULL;
	r->f->carried = NULL;
	close_fd(&r->upstream);
	free(r);
}

static void drop(struct flow *f)
{
	relay_free(f->carried);
}

/* Also what must be looked into now is not carried unread any longer. */
static bool covered(struct flow *f)
{
	return flow_covered(f) && !(f->protocol == NETWORK_TLS && f->host[0] &&
				    network_intercepts(f->e->config->network, f->host, f->port));
}

static const struct flow_carrier relaying = {.drop = drop, .covered = covered};

static void end(struct relay *r, enum egress_outcome outcome, const char *detail)
{
	struct flow *f = r->f;
	/* Half of a message must not look like a whole one. */
	const struct linger now = {.l_onoff = 1, .l_linger = 0};

	if (detail) {
		if (r->upstream >= 0)
			setsockopt(r->upstream, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		if (f->client >= 0)
			setsockopt(f->client, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	}
	relay_free(r);
	flow_end(f, outcome, detail);
}

/* ---------------------------------------------------------------- one direction */

enum pumped { PUMPED_WAIT, PUMPED_AGAIN, PUMPED_FAILED };

static bool pending(const struct direction *w)
{
	return w->in_pipe || w->held_len;
}

static enum pumped put_pending(struct direction *w)
{
	while (w->in_pipe) {
		ssize_t n = splice(w->pipe.fds[0], NULL, w->to, NULL, w->in_pipe,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n <= 0)
			return n < 0 && errno == EAGAIN ? PUMPED_WAIT : PUMPED_FAILED;
		w->in_pipe -= (size_t)n;
	}
	while (w->held_len) {
		ssize_t n =
			send(w->to, w->held + w->held_at, w->held_len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN ? PUMPED_WAIT : PUMPED_FAILED;
		w->held_at += (size_t)n;
		w->held_len -= (size_t)n;
	}
	free(w->held);
	w->held = NULL;
	return PUMPED_AGAIN;
}

/* *ret_moved: bytes taken from the sender. */
static enum pumped take_spliced(struct direction *w, size_t *ret_moved)
{
	ssize_t n = splice(w->from, NULL, w->pipe.fds[1], NULL, PIPE_BYTES,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n < 0)
		return errno == EAGAIN ? PUMPED_WAIT : PUMPED_FAILED;
	if (n == 0)
		w->eof = true;
	w->in_pipe = *ret_moved = w->spliced_last = (size_t)n;
	return PUMPED_AGAIN;
}

static enum pumped take_copied(struct direction *w, size_t *ret_moved)
{
	static char buffer[COPY_BYTES];
	ssize_t n = recv(w->from, buffer, sizeof(buffer), MSG_DONTWAIT), sent;

	if (n < 0)
		return errno == EAGAIN ? PUMPED_WAIT : PUMPED_FAILED;
	*ret_moved = (size_t)n;
	if (n == 0) {
		w->eof = true;
		return PUMPED_AGAIN;
	}
	w->bulk = n == sizeof(buffer);
	sent = send(w->to, buffer, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN)
		return PUMPED_FAILED;
	if (sent < 0)
		sent = 0;
	if (sent == n)
		return PUMPED_AGAIN;
	w->held_len = (size_t)(n - sent);
	w->held_at = 0;
	w->held = malloc(w->held_len);
	if (!w->held) {
		w->held_len = 0;
		errno = ENOMEM;
		return PUMPED_FAILED;
	}
	memcpy(w->held, buffer + sent, w->held_len);
	return PUMPED_AGAIN;
}

static void pause_both(struct relay *r, uint64_t pause_us)
{
	const struct timeval wait = {.tv_sec = (time_t)(pause_us / 1000000),
				     .tv_usec = (suseconds_t)(pause_us % 1000000)};

	if (r->paused || event_add(r->pause, &wait) < 0)
		return;
	r->paused = true;
	for (int i = 0; i < 2; i++)
		event_del(r->ways[i].readable);
}

static void pump(struct direction *w)
{
	struct relay *r = w->r;
	enum pumped p = PUMPED_AGAIN;
	bool quota = false;

	for (int round = 0; round < ROUNDS && p == PUMPED_AGAIN; round++) {
		uint64_t pause_us;
		size_t moved = 0;

		if (pending(w) && (p = put_pending(w)) != PUMPED_AGAIN)
			break;
		/* Also what other flows have moved counts, and before this one moves anything. */
		quota = quota || flow_quota_reached(r->f);
		pause_us = flow_pause_us(r->f);
		if (pause_us)
			pause_both(r, pause_us);
		if (w->eof || quota || r->paused)
			break;
		if (w->bulk && pipe_lend(&w->pipe))
			p = take_spliced(w, &moved);
		else
			p = take_copied(w, &moved);
		if (!moved)
			continue;
		quota = flow_account(r->f, w->outwards ? moved : 0, w->outwards ? 0 : moved) < 0;
	}
	if (p == PUMPED_FAILED) {
		end(r, EGRESS_ALLOWED, strerrorname_np(errno));
		return;
	}
	if (quota) {
		end(r, EGRESS_BLOCKED, flow_quota_detail(r->f));
		return;
	}
	if (pending(w)) {
		event_del(w->readable);
		if (event_add(w->writable, NULL) < 0)
			end(r, EGRESS_ALLOWED, "out of memory");
		return;
	}
	if (w->pipe.fds[0] >= 0) {
		pipe_return(&w->pipe, true);
		/* One that has become slow copies again, and needs no pipe then. */
		w->bulk = w->spliced_last >= COPY_BYTES;
	}
	if (w->eof) {
		event_del(w->readable);
		if (!w->shut)
			shutdown(w->to, SHUT_WR);
		w->shut = true;
		if (r->ways[0].shut && r->ways[1].shut)
			end(r, EGRESS_ALLOWED, NULL);
		return;
	}
	if (!r->paused && event_add(w->readable, NULL) < 0)
		end(r, EGRESS_ALLOWED, "out of memory");
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	pump(arg);
}

static void on_pause(evutil_socket_t fd, short what, void *arg)
{
	struct relay *r = arg;

	(void)fd;
	(void)what;
	r->paused = false;
	for (int i = 0; i < 2; i++)
		if (!r->ways[i].eof && !pending(&r->ways[i]))
			event_add(r->ways[i].readable, NULL);
}

/* ---------------------------------------------------------------- the beginning */

static void carry(struct relay *r)
{
	const int on = 1;
	struct event_base *base = r->f->e->base;
	bool ok = true;

	setsockopt(r->f->client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	for (int i = 0; i < 2; i++) {
		struct direction *w = &r->ways[i];

		w->from = i ? r->upstream : r->f->client;
		w->to = i ? r->f->client : r->upstream;
		w->readable = event_new(base, w->from, EV_READ | EV_PERSIST, on_ready, w);
		w->writable = event_new(base, w->to, EV_WRITE, on_ready, w);
		ok = ok && w->readable && w->writable && event_add(w->readable, NULL) == 0;
	}
	r->pause = evtimer_new(base, on_pause, r);
	if (!ok || !r->pause)
		end(r, EGRESS_UNREACHABLE, "out of memory");
}

static void on_dialled(const struct dial_result *d, void *arg)
{
	struct relay *r = arg;

	r->dial = NULL;
	flow_dialled(r->f, d);
	if (d->fd < 0) {
		end(r, d->outcome, d->detail);
		return;
	}
	r->upstream = d->fd;
	carry(r);
}

void relay_start(struct flow *f)
{
	struct relay *r = calloc(1, sizeof(*r));

	if (!r) {
		flow_end(f, EGRESS_UNREACHABLE, "out of memory");
		return;
	}
	r->f = f;
	r->upstream = take_fd(&f->upstream);
	for (int i = 0; i < 2; i++) {
		r->ways[i].r = r;
		r->ways[i].pipe = (struct pipe){{-1, -1}};
		r->ways[i].outwards = i == 0;
	}
	f->carrier = &relaying;
	f->carried = r;
	if (r->upstream >= 0) {
		carry(r);
		return;
	}
	r->dial = flow_dial(f, on_dialled, r);
	if (!r->dial)
		end(r, EGRESS_UNREACHABLE, "out of memory");
}
