/* Published ports: see inbound.h.
 *
 * Runs in the broker. Clients are programs of the host, which the broker has no reason to trust
 * either. For each of them the supervisor is asked for a connection to the port in the box; the
 * first process in there makes it and hands it out (INIT_CONNECT in src/init/protocol.h), and the
 * supervisor has checked that it is a TCP socket of the box's own network. What is at its other end
 * is the box's business, so a socket that is not what it should be wrongs nobody but the box: even
 * one whose other descriptors in the box change its flags can at worst hold up this broker, which
 * is the box's own. It is checked all the same that it is connected to the port in question. */
#include "egress/inbound.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "egress/flow.h"
#include "egress/linger.h"
#include "egress/listener.h"
#include "egress/relay.h"

#define WAITING_MAX   1024 /* clients for whom there is no connection yet */
#define INBOUND_DOORS 32   /* listeners: two an entry of the policy */
#define ASKED_MAX     32   /* of them, those for whom the supervisor was asked */
#define CONNECT_S     10
#define AGAIN_MS      20 /* to ask a supervisor that is behind */

enum state { QUEUED, ASKED, CONNECTING };

struct waiting {
	TAILQ_ENTRY(waiting) entry;
	struct inbound *v;
	struct flow *f;
	uint32_t id, index;
	enum state state;
	struct event *timeout, *writable;
};

struct door {
	struct inbound *v;
	uint32_t index;
	uint16_t port; /* in the box */
	int fd;
	struct listener *listener;
};

struct inbound {
	struct egress *e;
	TAILQ_HEAD(, waiting) all;
	size_t n, nasked;
	uint32_t next_id;
	struct event *again;
	struct door *doors;
	size_t ndoors;
};

static void ask(struct inbound *v);

/* Forgets that the flow waits; it is the caller's then. */
static struct flow *release(struct waiting *w)
{
	struct inbound *v = w->v;
	struct flow *f = w->f;

	TAILQ_REMOVE(&v->all, w, entry);
	v->n--;
	if (w->state == ASKED)
		v->nasked--;
	if (w->timeout)
		event_free(w->timeout);
	if (w->writable)
		event_free(w->writable);
	free(w);
	f->carrier = NULL;
	f->carried = NULL;
	return f;
}

static void drop(struct flow *f)
{
	release(f->carried);
}

static const struct flow_carrier waiting_for = {.drop = drop};

static void fail(struct waiting *w, const char *detail)
{
	struct inbound *v = w->v;

	flow_end(release(w), EGRESS_UNREACHABLE, detail);
	ask(v);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	fail(arg, strerrorname_np(ETIMEDOUT));
}

/* ---------------------------------------------------------------- asking */

static int put(struct inbound *v, const struct waiting *w)
{
	struct egress_message m = {
		.kind = EGRESS_CONNECT, .value = w->id, .connect = {.index = w->index}};

	return send(v->e->control, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(m)
		       ? 0
		       : -errno;
}

/* In the order in which they came. */
static void ask(struct inbound *v)
{
	const struct timeval again = {.tv_usec = AGAIN_MS * 1000};
	struct waiting *w;

	TAILQ_FOREACH(w, &v->all, entry)
	{
		if (v->nasked >= ASKED_MAX)
			return;
		if (w->state != QUEUED)
			continue;
		if (put(v, w) < 0) {
			event_add(v->again, &again);
			return;
		}
		w->state = ASKED;
		v->nasked++;
	}
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	ask(arg);
}

/* ---------------------------------------------------------------- the box's side */

/* 0: connected to this port of its loopback; -ENOTCONN: not yet. */
static int check_peer(int fd, uint16_t port, char ret[static INET6_ADDRSTRLEN])
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	const struct sockaddr_in *in = (struct sockaddr_in *)&peer;
	const struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&peer;

	if (getpeername(fd, (struct sockaddr *)&peer, &len) < 0)
		return -errno;
	if (peer.ss_family == AF_INET && in->sin_addr.s_addr == htonl(INADDR_LOOPBACK) &&
	    ntohs(in->sin_port) == port)
		return inet_ntop(AF_INET, &in->sin_addr, ret, INET6_ADDRSTRLEN) ? 0 : -errno;
	if (peer.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) &&
	    ntohs(in6->sin6_port) == port)
		return inet_ntop(AF_INET6, &in6->sin6_addr, ret, INET6_ADDRSTRLEN) ? 0 : -errno;
	return -EPROTO;
}

static void settle(struct waiting *w)
{
	const int on = 1;
	int error = 0, r;
	socklen_t len = sizeof(error);
	struct flow *f = w->f;

	if (getsockopt(f->upstream, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	r = error ? -error : check_peer(f->upstream, f->port, f->dialled);
	if (r == -EPROTO) {
		fail(w, "the box's first process handed out a socket that goes elsewhere");
		return;
	}
	if (r < 0) {
		fail(w, strerrorname_np(-r));
		return;
	}
	setsockopt(f->upstream, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));

	struct inbound *v = w->v;

	relay_start(release(w));
	ask(v);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	settle(arg);
}

/* The server's queue is full: the kernel goes on trying. */
static void await(struct waiting *w)
{
	w->state = CONNECTING;
	w->v->nasked--;
	w->writable = event_new(w->v->e->base, w->f->upstream, EV_WRITE, on_writable, w);
	if (!w->writable || event_add(w->writable, NULL) < 0)
		fail(w, "out of memory");
	else
		ask(w->v);
}

void inbound_connected(struct inbound *v, uint32_t id, int error, int fd)
{
	char ignored[INET6_ADDRSTRLEN];
	struct waiting *w;

	TAILQ_FOREACH(w, &v->all, entry)
	{
		if (w->id == id && w->state == ASKED)
			break;
	}
	/* The client gave up meanwhile, or waited too long. */
	if (!w) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (fd < 0) {
		const char *name = error > 0 ? strerrorname_np(error) : NULL;

		fail(w, name ? name : "refused");
		return;
	}
	w->f->upstream = fd;
	if (fd_set_nonblock(fd, true) < 0)
		fail(w, strerrorname_np(errno));
	else if (check_peer(fd, w->f->port, ignored) == -ENOTCONN)
		await(w);
	else
		settle(w);
}

/* ---------------------------------------------------------------- the host's side */

/* Who it is: "127.0.0.1:40000", or "uid 1000 pid 4242" of a Unix socket. */
static void describe_client(int fd, char *out, size_t size)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	char text[INET6_ADDRSTRLEN];
	struct ucred who;
	socklen_t who_len = sizeof(who);

	if (getpeername(fd, (struct sockaddr *)&from, &len) < 0)
		return;
	if (from.ss_family == AF_INET) {
		const struct sockaddr_in *in = (struct sockaddr_in *)&from;

		snprintf(out, size, "%s:%u", inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)),
			 ntohs(in->sin_port));
	} else if (from.ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&from;

		snprintf(out, size, "[%s]:%u",
			 inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text)),
			 ntohs(in6->sin6_port));
	} else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len) == 0) {
		snprintf(out, size, "uid %u pid %d", who.uid, who.pid);
	}
}

static void refuse(struct inbound *v, int client, uint16_t port)
{
	struct egress_event ev = {
		.outcome = EGRESS_BLOCKED, .what = EGRESS_INBOUND, .rule = -1, .port = port};

	EVENT_TEXT(ev.detail, "too many connections are open at a time");
	event_tell(v->e, &ev);
	linger_reset(client);
}

static void on_client(int client, void *arg)
{
	const struct timeval most = {.tv_sec = CONNECT_S};
	struct door *d = arg;
	struct inbound *v = d->v;
	struct waiting *w = v->n < WAITING_MAX ? calloc(1, sizeof(*w)) : NULL;
	struct flow *f = w ? flow_new(v->e, client, FLOW_INBOUND) : NULL;

	if (!f) {
		free(w);
		refuse(v, client, d->port);
		return;
	}
	*w = (struct waiting){.v = v, .f = f, .id = v->next_id++, .index = d->index};
	f->port = d->port;
	f->protocol = NETWORK_TCP;
	f->carrier = &waiting_for;
	f->carried = w;
	describe_client(client, f->sni, sizeof(f->sni));
	TAILQ_INSERT_TAIL(&v->all, w, entry);
	v->n++;
	w->timeout = evtimer_new(v->e->base, on_timeout, w);
	if (!w->timeout || event_add(w->timeout, &most) < 0)
		fail(w, "out of memory");
	else
		ask(v);
}

int inbound_listen(struct inbound *v, uint32_t index, const int *fds, size_t n)
{
	const struct policy_network *network = v->e->config->network;
	int r = index < network->npublish ? 0 : -EINVAL;

	for (size_t i = 0; i < n; i++) {
		struct door *d = &v->doors[v->ndoors];

		if (r < 0 || v->ndoors == INBOUND_DOORS) {
			close(fds[i]);
			r = -EINVAL;
			continue;
		}
		*d = (struct door){
			.v = v, .index = index, .port = network->publish[index].port, .fd = fds[i]};
		v->ndoors++;
		d->listener = fd_set_nonblock(fds[i], true) < 0
				      ? NULL
				      : listener_new(v->e->base, fds[i], on_client, d);
		if (!d->listener)
			r = -ENOMEM;
	}
	return r;
}

int inbound_new(struct egress *e, struct inbound **ret)
{
	struct inbound *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	v->e = e;
	TAILQ_INIT(&v->all);
	v->doors = calloc(INBOUND_DOORS, sizeof(*v->doors));
	v->again = evtimer_new(e->base, on_again, v);
	if (!v->doors || !v->again) {
		inbound_free(v);
		return -ENOMEM;
	}
	*ret = v;
	return 0;
}

void inbound_free(struct inbound *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->ndoors; i++) {
		listener_free(v->doors[i].listener);
		close_fd(&v->doors[i].fd);
	}
	if (v->again)
		event_free(v->again);
	free(v->doors);
	free(v);
}
