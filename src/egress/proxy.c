/* The proxy's door: see proxy.h.
 *
 * Runs in the broker, on a listener of the box's loopback. Hostile: all that the client says until
 * its target is known (proxy_wire.c), and how slowly. Bytes are peeked at, and exactly those of the
 * handshake are taken, so that what follows is there for whoever carries the flow. A client is a
 * flow from the start, and so counts as one.
 *
 * CONNECT and SOCKS are answered once the other side is connected, where that can be known before
 * the client's first bytes are: so a name that does not exist is an error of the proxy's protocol,
 * and not a connection that breaks. Behind the answer the flow is inspected as one that came by the
 * transparent door: the proxy opens nothing that is closed otherwise. */
#include "egress/proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/accept.h"
#include "egress/client.h"
#include "egress/flow.h"
#include "egress/http/http.h"
#include "egress/inspect.h"
#include "egress/linger.h"
#include "egress/listener.h"
#include "egress/proxy_wire.h"
#include "egress/refuse.h"

#define HANDSHAKE_S 10

struct proxy {
	struct egress *e;
	struct listener *listener;
};

enum step { STEP_FIRST, STEP_LOGIN, STEP_SOCKS5, STEP_DIAL };

struct shake {
	struct flow *f;
	struct event *readable, *deadline;
	struct dial *dial;
	enum step step;
	uint8_t version; /* SOCKS 4 or 5; 0: HTTP */
	char accept[256];
};

static uint8_t peeked[PROXY_HEAD_MAX];

static void shake_free(struct shake *s)
{
	dial_cancel(s->dial);
	if (s->readable)
		event_free(s->readable);
	if (s->deadline)
		event_free(s->deadline);
	s->f->carrier = NULL;
	s->f->carried = NULL;
	free(s);
}

static void drop(struct flow *f)
{
	shake_free(f->carried);
}

static bool covered(struct flow *f)
{
	struct network_answer said;

	if (!f->host[0] && !f->family)
		return true;
	if (!flow_any_allowed(f, &said))
		return false;
	f->rule = said.rule;
	return true;
}

static const struct flow_carrier shaking = {.drop = drop, .covered = covered};

/* ---------------------------------------------------------------- answers */

static bool put(struct flow *f, const void *data, size_t len)
{
	return send(f->client, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

enum socks_reply { SOCKS_OK = 0, SOCKS_DENIED = 2, SOCKS_UNREACHABLE = 4, SOCKS_COMMAND = 7 };

static bool put_socks(struct shake *s, enum socks_reply reply)
{
	const uint8_t five[10] = {5, (uint8_t)reply, 0, 1};
	const uint8_t four[8] = {0, reply == SOCKS_OK ? 90 : 91};

	return s->version == 5 ? put(s->f, five, sizeof(five)) : put(s->f, four, sizeof(four));
}

static bool put_text(struct flow *f, const char *status, const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT(2048);

	buf_addf(&b,
		 "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: "
		 "%zu\r\nConnection: close\r\n\r\n%s\n",
		 status, strlen(text) + 1, text);
	return !b.failed && put(f, b.data, b.len);
}

/* After an answer that says no. */
static void end(struct shake *s, enum egress_outcome outcome, int rule, const char *detail)
{
	struct flow *f = s->f;

	shake_free(s);
	linger_close(f->e, take_fd(&f->client));
	f->rule = rule;
	flow_end(f, outcome, detail);
}

static void refuse(struct shake *s, int rule, const char *detail)
{
	struct flow *f = s->f;

	if (s->version) {
		put_socks(s, SOCKS_DENIED);
		end(s, EGRESS_BLOCKED, rule, detail);
		return;
	}

	char accept[sizeof(s->accept)];

	memcpy(accept, s->accept, sizeof(accept));
	shake_free(s);
	inspect_refuse(f, VOICE_HTTP, rule, detail, accept[0] ? accept : NULL);
}

/* ---------------------------------------------------------------- the target is known */

static void answered(struct shake *s)
{
	static const char ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	struct flow *f = s->f;
	bool sent = s->version ? put_socks(s, SOCKS_OK) : put(f, ok, sizeof(ok) - 1);

	shake_free(s);
	if (sent)
		inspect_start(f);
	else
		flow_end(f, EGRESS_UNREACHABLE, "the client is gone");
}

static void on_dialled(const struct dial_result *d, void *arg)
{
	struct shake *s = arg;
	struct flow *f = s->f;

	s->dial = NULL;
	flow_dialled(f, d);
	if (d->fd >= 0) {
		f->upstream = d->fd;
		answered(s);
	} else if (d->outcome == EGRESS_BLOCKED) {
		refuse(s, -1, d->detail);
	} else {
		if (s->version)
			put_socks(s, SOCKS_UNREACHABLE);
		else
			put_text(f, "502 Bad Gateway", d->detail);
		end(s, d->outcome, f->rule, d->detail);
	}
}

static void on_target(struct shake *s, const struct proxy_target *t)
{
	struct flow *f = s->f;
	struct network_answer said;

	f->quiet = false;
	f->door = s->version ? FLOW_SOCKS : FLOW_CONNECT;
	f->port = t->port;
	s->step = STEP_DIAL;
	if (t->host[0]) {
		memcpy(f->host, t->host, sizeof(f->host));
	} else if (accept_is_inside(t->family, &t->address)) {
		f->family = t->family;
		f->address = t->address;
		refuse(s, -1, "an address of the box itself; it is there without a proxy");
		return;
	} else if (!accept_name(f, t->family, &t->address)) {
		refuse(s, -1, "this address stands for no name");
		return;
	}
	if (!flow_any_allowed(f, &said)) {
		refuse(s, said.rule, NULL);
		return;
	}
	f->rule = said.rule;
	/* Where each request is looked at, whom to dial is known with the first of them. Else the
	 * rule by which it is dialled is the one that will carry it (inspect.c). */
	said = flow_ask(f, NETWORK_TCP);
	f->protocol = NETWORK_TCP;
	if (!said.allowed &&
	    !(f->host[0] && network_intercepts(f->e->config->network, f->host, f->port))) {
		said = flow_ask(f, NETWORK_TLS);
		f->protocol = NETWORK_TLS;
	}
	if (!said.allowed) {
		f->protocol = 0;
		answered(s);
		return;
	}
	f->rule = said.rule;
	event_del(s->readable);
	event_del(s->deadline);
	s->dial = flow_dial(f, on_dialled, s);
	if (!s->dial)
		end(s, EGRESS_UNREACHABLE, f->rule, "out of memory");
}

/* ---------------------------------------------------------------- the handshake */

/* What was peeked at and understood is taken. */
static bool consume(struct flow *f, size_t len)
{
	return recv(f->client, peeked, len, MSG_DONTWAIT) == (ssize_t)len;
}

static void give_up(struct shake *s)
{
	struct flow *f = s->f;

	shake_free(s);
	flow_end(f, EGRESS_BLOCKED, "not a proxy's client");
}

static void bad_name(struct shake *s)
{
	s->f->quiet = false;
	refuse(s, -1, "the name of the target is not a host name");
}

static void on_request(struct shake *s, enum proxy_parsed parsed, uint8_t command,
		       const struct proxy_target *t)
{
	if (parsed == PROXY_MORE)
		return;
	if (parsed == PROXY_BROKEN || !consume(s->f, t->len)) {
		give_up(s);
		return;
	}
	if (parsed == PROXY_BAD_NAME) {
		bad_name(s);
		return;
	}
	if (command != 1) {
		put_socks(s, SOCKS_COMMAND);
		end(s, EGRESS_BLOCKED, -1, "SOCKS: only CONNECT is spoken");
		return;
	}
	on_target(s, t);
}

static void on_http(struct shake *s, size_t len)
{
	struct flow *f = s->f;
	struct inspect_head head;
	struct proxy_target t;
	enum proxy_form form = FORM_ORIGIN;
	enum proxy_parsed parsed = http_proxy_head((const char *)peeked, len, &form, &t);

	if (parsed == PROXY_MORE)
		return;
	if (parsed == PROXY_BROKEN || (form == FORM_ORIGIN && parsed == PROXY_OK)) {
		put_text(f, "400 Bad Request",
			 "This is a proxy: CONNECT, absolute-form HTTP, SOCKS.");
		shake_free(s);
		linger_close(f->e, take_fd(&f->client));
		flow_end(f, EGRESS_BLOCKED, "not a proxy's client");
		return;
	}
	if (form == FORM_ABSOLUTE) {
		shake_free(s);
		f->door = FLOW_FORWARD;
		f->protocol = NETWORK_HTTP;
		http_take(f);
		return;
	}
	(void)inspect_head_parse((const char *)peeked, len, &head);
	memcpy(s->accept, head.accept, sizeof(s->accept));
	memcpy(f->method, head.method, sizeof(f->method));
	if (!consume(f, t.len))
		give_up(s);
	else if (parsed == PROXY_BAD_NAME)
		bad_name(s);
	else
		on_target(s, &t);
}

/* This and the next: true if the handshake goes on, with the next step. */
static bool on_greeting(struct shake *s, size_t len)
{
	uint8_t method, answer[2] = {5};
	size_t taken;
	enum proxy_parsed parsed = socks5_greeting(peeked, len, &method, &taken);

	if (parsed == PROXY_MORE)
		return false;
	answer[1] = method;
	if (parsed != PROXY_OK || !consume(s->f, taken) || !put(s->f, answer, 2) || method == 255) {
		give_up(s);
		return false;
	}
	s->step = method ? STEP_LOGIN : STEP_SOCKS5;
	return true;
}

static bool on_login(struct shake *s, size_t len)
{
	static const uint8_t welcome[2] = {1, 0};
	size_t taken;
	enum proxy_parsed parsed = socks5_login(peeked, len, &taken);

	if (parsed == PROXY_MORE)
		return false;
	if (parsed != PROXY_OK || !consume(s->f, taken) || !put(s->f, welcome, 2)) {
		give_up(s);
		return false;
	}
	s->step = STEP_SOCKS5;
	return true;
}

static bool on_first(struct shake *s, size_t len)
{
	struct proxy_target t;
	uint8_t command = 0;
	enum proxy_parsed parsed;

	switch (peeked[0]) {
	case 5: s->version = 5; return on_greeting(s, len);
	case 4:
		s->version = 4;
		parsed = socks4_request(peeked, len, &command, &t);
		on_request(s, parsed, command, &t);
		return false;
	default:
		switch (inspect_kind_of(peeked, len)) {
		case KIND_MORE: break;
		case KIND_HTTP: on_http(s, len); break;
		default: give_up(s); break;
		}
		return false;
	}
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct shake *s = arg;

	(void)what;
	/* A step may leave the next one's bytes there, of which no edge will tell. */
	for (bool more = true; more;) {
		ssize_t n = recv(fd, peeked, sizeof(peeked), MSG_PEEK | MSG_DONTWAIT);
		struct proxy_target t;
		enum proxy_parsed parsed;
		uint8_t command = 0;

		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			struct flow *f = s->f;

			shake_free(s);
			flow_end(f, EGRESS_ALLOWED, NULL); /* quiet: nothing was asked for */
			return;
		}
		more = false;
		switch (s->step) {
		case STEP_FIRST: more = on_first(s, (size_t)n); break;
		case STEP_LOGIN: more = on_login(s, (size_t)n); break;
		case STEP_SOCKS5:
			parsed = socks5_request(peeked, (size_t)n, &command, &t);
			on_request(s, parsed, command, &t);
			break;
		case STEP_DIAL: break;
		}
	}
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	give_up(arg);
}

static void on_client(int client, void *arg)
{
	const struct timeval wait = {.tv_sec = HANDSHAKE_S};
	struct proxy *p = arg;
	struct flow *f = flow_new(p->e, client, FLOW_CONNECT);
	struct sockaddr_storage from, to;
	socklen_t len = sizeof(from), to_len = sizeof(to);
	struct shake *s = f ? calloc(1, sizeof(*s)) : NULL;

	if (!f) {
		linger_reset(client);
		return;
	}
	f->quiet = true;
	if (getpeername(client, (struct sockaddr *)&from, &len) == 0 &&
	    getsockname(client, (struct sockaddr *)&to, &to_len) == 0 &&
	    from.ss_family == AF_INET) {
		f->source_port = ntohs(((struct sockaddr_in *)&from)->sin_port);
		f->source_family = 4;
		f->client_inode = client_inode(p->e->sockets[EGRESS_DIAG], IPPROTO_TCP, &from, &to);
	}
	if (!s) {
		flow_end(f, EGRESS_UNREACHABLE, NULL);
		return;
	}
	s->f = f;
	f->carrier = &shaking;
	f->carried = s;
	s->readable = event_new(p->e->base, client, EV_READ | EV_PERSIST | EV_ET, on_readable, s);
	s->deadline = evtimer_new(p->e->base, on_deadline, s);
	if (!s->readable || !s->deadline || event_add(s->readable, NULL) < 0 ||
	    event_add(s->deadline, &wait) < 0) {
		shake_free(s);
		flow_end(f, EGRESS_UNREACHABLE, NULL);
	}
}

int proxy_new(struct egress *e, struct proxy **ret)
{
	struct proxy *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->e = e;
	p->listener = listener_new(e->base, e->sockets[EGRESS_PROXY], on_client, p);
	if (!p->listener) {
		free(p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

void proxy_free(struct proxy *p)
{
	if (!p)
		return;
	listener_free(p->listener);
	free(p);
}
