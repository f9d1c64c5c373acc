/* UDP: see udp.h.
 *
 * Runs in the broker. Hostile: datagrams of the box, from as many source ports as it likes, and
 * those of the other side. Each source port is a session with a connected socket of its own, so
 * that only who was written to can answer; sessions are bounded, end when they are idle, and are
 * told as flows. While a name is being resolved a few datagrams wait; UDP may lose the others. */
#include "egress/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "egress/client.h"
#include "egress/flow.h"

#define SESSIONS_MAX 256
#define IDLE_S	     60
#define WAITING_MAX  4
#define WAITING_SIZE 65536 /* of all that wait in a session */
#define BATCH	     32

/* A bound socket. */
struct port {
	struct udp *u;
	int fd; /* borrowed; -1: not used */
	struct event *event;
	struct synthetic_name *name; /* or NULL: a literal address */
	int family;
	struct in6_addr address;
	uint16_t port;
};

struct session {
	TAILQ_ENTRY(session) entry; /* the one heard of least recently first */
	struct port *port;
	struct flow *f;
	struct dial *dial;
	int upstream;
	struct event *event;
	struct sockaddr_storage client;
	socklen_t client_len;
	uint64_t heard_us;
	size_t nwaiting, waiting_bytes;
	struct {
		size_t len;
		uint8_t *data;
	} waiting[WAITING_MAX];
};

struct udp {
	struct egress *e;
	struct port ports[2 * EGRESS_UDPS]; /* as the sockets */
	TAILQ_HEAD(sessions, session) sessions;
	size_t nsessions;
	struct event *timer;
};

static uint8_t datagram[65536];

/* ---------------------------------------------------------------- sessions */

static void waiting_free(struct session *s)
{
	while (s->nwaiting)
		free(s->waiting[--s->nwaiting].data);
}

static void waiting_add(struct session *s, const uint8_t *data, size_t len)
{
	uint8_t *copy;

	if (s->nwaiting == WAITING_MAX || len > WAITING_SIZE - s->waiting_bytes)
		return;
	copy = malloc(len ? len : 1);
	if (!copy)
		return;
	memcpy(copy, data, len);
	s->waiting[s->nwaiting].len = len;
	s->waiting[s->nwaiting++].data = copy;
	s->waiting_bytes += len;
}

static void session_free(struct session *s)
{
	struct udp *u = s->port->u;

	dial_cancel(s->dial);
	if (s->event)
		event_free(s->event);
	close_fd(&s->upstream);
	waiting_free(s);
	s->f->carrier = NULL;
	s->f->carried = NULL;
	TAILQ_REMOVE(&u->sessions, s, entry);
	u->nsessions--;
	free(s);
}

static void drop(struct flow *f)
{
	session_free(f->carried);
}

static const struct flow_carrier carrying = {.drop = drop};

static void end(struct session *s, enum egress_outcome outcome, const char *detail)
{
	struct flow *f = s->f;

	session_free(s);
	flow_end(f, outcome, detail);
}

static void touch(struct session *s)
{
	struct udp *u = s->port->u;

	s->heard_us = clock_mono_us();
	TAILQ_REMOVE(&u->sessions, s, entry);
	TAILQ_INSERT_TAIL(&u->sessions, s, entry);
}

/* Over a rate datagrams are lost, as they are on a line that is full. false: the session is over.
 */
static bool pass(struct session *s, size_t out, size_t in, bool *ret_lost)
{
	*ret_lost = flow_pause_us(s->f) > 0;
	if (*ret_lost || flow_account(s->f, out, in) == 0)
		return true;
	end(s, EGRESS_BLOCKED, flow_quota_detail(s->f));
	return false;
}

static void on_upstream(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)what;
	for (int i = 0; i < BATCH; i++) {
		ssize_t n = recv(fd, datagram, sizeof(datagram), MSG_DONTWAIT);
		bool lost;

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			end(s, s->f->bytes_in ? EGRESS_ALLOWED : EGRESS_UNREACHABLE,
			    strerrorname_np(errno));
			return;
		}
		if (!pass(s, 0, (size_t)n, &lost))
			return;
		touch(s);
		if (!lost)
			(void)!sendto(s->port->fd, datagram, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL,
				      (struct sockaddr *)&s->client, s->client_len);
	}
}

static void on_dialled(const struct dial_result *d, void *arg)
{
	struct session *s = arg;
	struct event_base *base = s->f->e->base;

	s->dial = NULL;
	flow_dialled(s->f, d);
	if (d->fd < 0) {
		end(s, d->outcome, d->detail);
		return;
	}
	s->upstream = d->fd;
	s->event = event_new(base, d->fd, EV_READ | EV_PERSIST, on_upstream, s);
	if (!s->event || event_add(s->event, NULL) < 0) {
		end(s, EGRESS_UNREACHABLE, "out of memory");
		return;
	}
	for (size_t i = 0; i < s->nwaiting; i++)
		(void)!send(s->upstream, s->waiting[i].data, s->waiting[i].len,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
	waiting_free(s);
}

static void tell_refused(struct port *p, const char *detail)
{
	struct egress_event ev = {.outcome = EGRESS_BLOCKED,
				  .what = EGRESS_CONNECTION,
				  .rule = -1,
				  .port = p->port,
				  .protocol = NETWORK_UDP};

	EVENT_TEXT(ev.host, p->name ? p->name->host : "");
	if (!p->name)
		inet_ntop(p->family, &p->address, ev.address, sizeof(ev.address));
	EVENT_TEXT(ev.detail, detail);
	event_tell(p->u->e, &ev);
}

static uint16_t source_port(const struct sockaddr_storage *from)
{
	return ntohs(from->ss_family == AF_INET ? ((const struct sockaddr_in *)from)->sin_port
						: ((const struct sockaddr_in6 *)from)->sin6_port);
}

/* While there are sessions. */
static void wake(struct udp *u)
{
	const struct timeval later = {.tv_sec = 5};

	if (u->nsessions && !evtimer_pending(u->timer, NULL))
		event_add(u->timer, &later);
}

static struct session *session_new(struct port *p, const struct sockaddr_storage *from,
				   socklen_t len)
{
	struct udp *u = p->u;
	struct sockaddr_storage to;
	socklen_t to_len = sizeof(to);
	struct session *s;
	struct flow *f;

	if (u->nsessions >= SESSIONS_MAX)
		end(TAILQ_FIRST(&u->sessions), EGRESS_ALLOWED, "made room for another");
	f = flow_new(u->e, -1, FLOW_UDP);
	if (!f) {
		tell_refused(p, "too many connections are open at a time");
		return NULL;
	}
	f->port = p->port;
	f->protocol = NETWORK_UDP;
	f->source_port = source_port(from);
	f->source_family = from->ss_family == AF_INET ? 4 : 6;
	if (getsockname(p->fd, (struct sockaddr *)&to, &to_len) == 0)
		f->client_inode = client_inode(u->e->sockets[EGRESS_DIAG], IPPROTO_UDP, from, &to);
	if (p->name) {
		synthetic_hold(p->name);
		f->name = p->name;
		memcpy(f->host, p->name->host, sizeof(f->host));
	} else {
		f->family = p->family;
		f->address = p->address;
	}
	if (!flow_covered(f)) {
		flow_refuse(f, f->rule, NULL);
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		flow_end(f, EGRESS_UNREACHABLE, "out of memory");
		return NULL;
	}
	s->port = p;
	s->f = f;
	s->upstream = -1;
	s->client = *from;
	s->client_len = len;
	s->heard_us = clock_mono_us();
	f->carrier = &carrying;
	f->carried = s;
	TAILQ_INSERT_TAIL(&u->sessions, s, entry);
	u->nsessions++;
	wake(u);
	s->dial = flow_dial(f, on_dialled, s);
	if (!s->dial) {
		end(s, EGRESS_UNREACHABLE, "out of memory");
		return NULL;
	}
	return s;
}

static struct session *session_find(struct port *p, const struct sockaddr_storage *from,
				    socklen_t len)
{
	struct session *s;

	TAILQ_FOREACH_REVERSE(s, &p->u->sessions, sessions, entry)
	if (s->port == p && s->client_len == len && memcmp(&s->client, from, len) == 0)
		return s;
	return NULL;
}

static void on_port(evutil_socket_t fd, short what, void *arg)
{
	struct port *p = arg;

	(void)what;
	for (int i = 0; i < BATCH; i++) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);
		struct session *s;
		bool lost;
		ssize_t n;

		memset(&from, 0, sizeof(from));
		n = recvfrom(fd, datagram, sizeof(datagram), MSG_DONTWAIT, (struct sockaddr *)&from,
			     &len);
		if (n < 0)
			return;
		s = session_find(p, &from, len);
		if (!s)
			s = session_new(p, &from, len);
		if (!s || !pass(s, (size_t)n, 0, &lost))
			continue;
		touch(s);
		if (lost)
			continue;
		if (s->upstream < 0)
			waiting_add(s, datagram, (size_t)n);
		else
			(void)!send(s->upstream, datagram, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

/* ---------------------------------------------------------------- ports */

static bool is_open(const struct udp *u, const struct synthetic_name *n, int family,
		    const void *address, uint16_t port)
{
	for (size_t i = 0; i < ARRAY_SIZE(u->ports); i++) {
		const struct port *p = &u->ports[i];

		if (p->fd >= 0 && p->port == port && p->family == family &&
		    (n ? p->name == n
		       : !p->name && memcmp(&p->address, address, family == AF_INET ? 4 : 16) == 0))
			return true;
	}
	return false;
}

static void open_port(struct udp *u, struct synthetic_name *n, int family, const void *address,
		      uint16_t port)
{
	size_t first = family == AF_INET ? 0 : EGRESS_UDPS;
	struct sockaddr_storage at = {.ss_family = (sa_family_t)family};
	struct port *p = NULL;
	socklen_t len;

	if (is_open(u, n, family, address, port))
		return;
	for (size_t i = first; !p && i < first + EGRESS_UDPS; i++)
		if (u->ports[i].fd < 0 && u->e->sockets[EGRESS_UDP + i] >= 0)
			p = &u->ports[i];
	struct port probe = {.u = u, .fd = -1, .name = n, .family = family, .port = port};

	memcpy(&probe.address, address, family == AF_INET ? 4 : 16);
	if (!p) {
		tell_refused(&probe, "too many UDP ports of names are in use");
		return;
	}
	if (family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)&at;

		in->sin_port = htons(port);
		memcpy(&in->sin_addr, address, 4);
		len = sizeof(*in);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&at;

		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, address, 16);
		len = sizeof(*in6);
	}
	probe.fd = u->e->sockets[EGRESS_UDP + (p - u->ports)];
	if (bind(probe.fd, (struct sockaddr *)&at, len) < 0) {
		tell_refused(&probe, errno == EADDRINUSE ? "the port is in use inside"
							 : "the port cannot be opened inside");
		return;
	}
	*p = probe;
	p->event = event_new(u->e->base, p->fd, EV_READ | EV_PERSIST, on_port, p);
	if (!p->event || event_add(p->event, NULL) < 0)
		tell_refused(p, "out of memory");
	if (n)
		n->udp = true; /* its address is never given to another name */
}

static void open_ports(struct udp *u, const struct network_rule *r, struct synthetic_name *n,
		       int family, const void *address)
{
	/* A range that is wider than there are sockets is opened as far as they go. */
	for (size_t i = 0; i < r->nports; i++)
		for (unsigned port = r->ports[i].first, k = 0;
		     port <= r->ports[i].last && k < EGRESS_UDPS; port++, k++)
			open_port(u, n, family, address, (uint16_t)port);
}

void udp_open(struct egress *e, struct synthetic_name *n)
{
	const struct policy_network *network = e->config->network;

	for (size_t i = 0; i < network->nrules; i++) {
		const struct network_rule *r = &network->rules[i];
		struct in_addr a4;
		struct in6_addr a6;

		if (r->deny || !r->host || !(r->protocols & NETWORK_UDP) ||
		    !network_host_matches(r->host, n->host))
			continue;
		synthetic_address4(n, &a4);
		synthetic_address6(n, &a6);
		open_ports(e->udp, r, n, AF_INET, &a4);
		open_ports(e->udp, r, n, AF_INET6, &a6);
	}
}

static void open_literals(struct udp *u)
{
	const struct policy_network *network = u->e->config->network;

	for (size_t i = 0; i < network->nrules; i++) {
		const struct network_rule *r = &network->rules[i];

		if (!r->deny && r->cidr && (r->protocols & NETWORK_UDP) &&
		    r->cidr->bits == (r->cidr->family == AF_INET ? 32 : 128))
			open_ports(u, r, NULL, r->cidr->family, &r->cidr->address);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct udp *u = arg;
	uint64_t now_us = clock_mono_us();
	struct session *s;

	(void)fd;
	(void)what;
	while ((s = TAILQ_FIRST(&u->sessions)) && now_us - s->heard_us >= IDLE_S * 1000000ull)
		end(s, EGRESS_ALLOWED, NULL);
	wake(u);
}

int udp_new(struct egress *e, struct udp **ret)
{
	struct udp *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->e = e;
	TAILQ_INIT(&u->sessions);
	for (size_t i = 0; i < ARRAY_SIZE(u->ports); i++)
		u->ports[i].fd = -1;
	u->timer = evtimer_new(e->base, on_timer, u);
	if (!u->timer) {
		udp_free(u);
		return -ENOMEM;
	}
	open_literals(u);
	*ret = u;
	return 0;
}

void udp_free(struct udp *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(u->ports); i++)
		if (u->ports[i].event)
			event_free(u->ports[i].event);
	if (u->timer)
		event_free(u->timer);
	free(u);
}
