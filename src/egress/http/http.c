/* The HTTP engine: takes a flow over, opens its TLS, finds out which HTTP is spoken, and hands it
 * to h1.c or h2.c. See http.h and engine.h.
 *
 * Process: the broker; http_new() before it locks itself in, all else after. Hostile: both sides of
 * every flow.
 *
 * A TLS flow goes: the client's hello is read and waits; the server is dialled, with the client's
 * protocols (tls.c says why); its certificate is checked; then the client's handshake is finished,
 * with what the server chose. If there is no server to be had, the client's handshake is finished
 * all the same and its requests are answered with why: a program can read a 502, but not an alert.
 */
#include "egress/http/engine.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"

#define STAGE	     "egress"
#define HANDSHAKE_US (30 * 1000000ull)
#define HEAD_US	     (30 * 1000000ull)
#define LINGER_US    (2 * 1000000ull)
#define LINGER_BYTES (4u << 20)
#define PREFACE	     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static void step(struct carry *y);
static const struct flow_carrier carrier;

/* ---------------------------------------------------------------- the engine itself */

static int send_ca(struct egress *e, const char *pem, struct pale_err *err)
{
	_cleanup_free_ struct egress_message *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return err_nomem(err, STAGE);
	m->kind = EGRESS_CA;
	if (strlen(pem) >= sizeof(m->text))
		return err_set(err, PALE_E_SYSTEM, STAGE, 0, "the box's certificate is too large");
	snprintf(m->text, sizeof(m->text), "%s", pem);
	r = fd_send(e->control, m, sizeof(*m), NULL, 0);
	return r < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, -r, "send the box's certificate") : 0;
}

int http_new(struct egress *e, struct http **ret, struct pale_err *err)
{
	struct config *c = e->config;
	struct http *h = calloc(1, sizeof(*h));
	int r = 0;

	*ret = NULL;
	if (!h)
		return err_nomem(err, STAGE);
	h->e = e;
	h->head_us = HEAD_US;
	if (c->nsecrets)
		r = secrets_new(c->network, c->secrets, c->nsecrets, &h->secrets, err);
	if (r == 0 && c->trust) {
		r = tls_new(c->trust, c->trust_len, &h->tls, err);
		if (r == 0)
			r = ca_new(&h->ca, err);
		if (r == 0)
			r = send_ca(e, ca_pem(h->ca), err);
	}
	if (r < 0) {
		http_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	ca_free(h->ca);
	tls_free(h->tls);
	secrets_free(h->secrets);
	free(h);
}

int http_rules(struct egress *e, struct pale_err *err)
{
	const struct policy_network *n = e->config->network;

	if (!e->http || e->http->ca)
		return 0;
	for (size_t i = 0; i < n->nrules; i++)
		if (!n->rules[i].deny && n->rules[i].intercept)
			return err_set(
				err, PALE_E_POLICY, STAGE, 0,
				"rule %s looks into TLS, which this box was not started for: its "
				"programs do not trust an authority of Pale's",
				n->rules[i].where ? n->rules[i].where : "");
	return 0;
}

/* ---------------------------------------------------------------- the end */

static void let_go(struct carry *y)
{
	if (y->speaker)
		y->speaker->free(y);
	dial_cancel(y->dial);
	conn_free(y->client);
	conn_free(y->server);
	if (y->timer)
		event_free(y->timer);
	if (y->head_timer)
		event_free(y->head_timer);
	free(y);
}

void carry_note(struct carry *y, enum egress_outcome outcome, const char *detail)
{
	y->outcome = outcome;
	EVENT_TEXT(y->detail, detail ? detail : "");
}

void carry_end(struct carry *y, enum egress_outcome outcome, const char *detail)
{
	char text[160];
	struct flow *f = y->f;

	EVENT_TEXT(text, detail ? detail : "");
	let_go(y);
	f->carrier = NULL;
	f->carried = NULL;
	flow_end(f, outcome, text[0] ? text : NULL);
}

void carry_close(struct carry *y)
{
	/* Where nobody was dialled, or many (a proxy's client), the requests' events say it all. */
	if (y->told && (!y->f->dialled[0] || y->f->door == FLOW_FORWARD))
		y->f->quiet = true;
	carry_end(y, y->outcome, y->detail);
}

static void set_timer(struct carry *y, uint64_t us)
{
	struct timeval tv = {.tv_sec = (time_t)(us / 1000000),
			     .tv_usec = (suseconds_t)(us % 1000000)};

	if (us)
		event_add(y->timer, &tv);
	else
		event_del(y->timer);
}

/* After an answer that the client may not have read yet. */
static void linger(struct carry *y)
{
	struct conn *c = y->client;

	evbuffer_drain(c->in, evbuffer_get_length(c->in));
	if (c->failed || (c->eof && c->ended) || c->read_bytes - y->linger_from > LINGER_BYTES) {
		carry_close(y);
		return;
	}
	conn_read(c, true);
	if (c->ended && !event_pending(y->timer, EV_TIMEOUT, NULL))
		set_timer(y, LINGER_US);
}

void carry_linger(struct carry *y)
{
	y->state = CARRY_LINGER;
	carry_expect_head(y, false);
	carry_drop_server(y);
	y->linger_from = y->client->read_bytes;
	set_timer(y, 0);
	conn_end(y->client);
	linger(y);
}

/* ---------------------------------------------------------------- moving */

void carry_interest(struct carry *y, bool from_client, bool from_server)
{
	conn_read(y->client, from_client && !y->paused);
	if (y->server)
		conn_read(y->server, from_server && !y->paused);
}

bool carry_account(struct carry *y)
{
	uint64_t out, in, pause;

	if (!y->server)
		return true;
	out = y->server->written_bytes - y->accounted_out;
	in = y->server->read_bytes - y->accounted_in;
	y->accounted_out += out;
	y->accounted_in += in;
	if ((out || in) && flow_account(y->f, out, in) < 0 && !y->idle) {
		char detail[160];

		EVENT_TEXT(detail, flow_quota_detail(y->f));
		conn_reset(y->client);
		carry_end(y, EGRESS_BLOCKED, detail);
		return false;
	}
	pause = flow_pause_us(y->f);
	if (pause && !y->paused) {
		y->paused = true;
		set_timer(y, pause);
	}
	return true;
}

void carry_drop_server(struct carry *y)
{
	if (y->server) {
		/* Over a cap or not: this much was moved, and the next bytes will be told. */
		int r = flow_account(y->f, y->server->written_bytes - y->accounted_out,
				     y->server->read_bytes - y->accounted_in);

		(void)r;
	}
	dial_cancel(y->dial);
	y->dial = NULL;
	conn_free(y->server);
	y->server = NULL;
	y->accounted_out = y->accounted_in = 0;
}

static void on_conn(struct conn *c, void *arg)
{
	(void)c;
	step(arg);
}

/* ---------------------------------------------------------------- the server */

static void no_server(struct carry *y, enum egress_outcome outcome, const char *detail)
{
	y->server_failed = true;
	carry_note(y, outcome, detail);
	conn_free(y->server);
	y->server = NULL;
}

static void on_dialled(const struct dial_result *r, void *arg)
{
	struct carry *y = arg;
	SSL *ssl = NULL;

	y->dial = NULL;
	flow_dialled(y->f, r);
	if (r->fd < 0) {
		no_server(y, r->outcome, r->detail);
		step(y);
		return;
	}
	if (y->tls) {
		ssl = tls_client(y->h->tls, y->name, y->name_is_address, y->f->port,
				 y->hello.offered, y->hello.has_alpn);
		if (!ssl) {
			close(r->fd);
			no_server(y, EGRESS_UNREACHABLE, "out of memory");
			step(y);
			return;
		}
	}
	y->server = conn_new(y->f->e->base, r->fd, true, ssl, on_conn, y);
	if (!y->server) {
		close(r->fd);
		no_server(y, EGRESS_UNREACHABLE, "out of memory");
	} else if (y->tls) {
		y->state = CARRY_SERVER;
		set_timer(y, HANDSHAKE_US);
		conn_handshake(y->server);
		return;
	}
	step(y);
}

void carry_dial(struct carry *y, const struct exchange *x)
{
	struct dial_target to = {.port = y->f->port, .protocol = NETWORK_HTTP};

	y->server_failed = false;
	if (x && y->f->door == FLOW_FORWARD) {
		y->f->port = to.port = x->port;
		to.rule = x->verdict.rule;
		y->f->family = x->family;
		y->f->address = x->address;
		EVENT_TEXT(y->f->host, x->family ? "" : x->host);
		if (x->family) {
			to.family = x->family;
			to.address = &x->address;
		} else {
			to.host = x->host;
		}
		y->dial = dial_start(y->f->e, &to, on_dialled, y);
	} else {
		y->dial = flow_dial(y->f, on_dialled, y);
	}
	if (!y->dial)
		no_server(y, EGRESS_UNREACHABLE, "too many connections are being made");
}

/* ---------------------------------------------------------------- from the hello to the first
 * request */

static void speak(struct carry *y, bool h2)
{
	set_timer(y, 0);
	carry_expect_head(y, false);
	y->state = CARRY_SPEAK;
	if ((h2 ? h2_start(y) : h1_start(y)) < 0)
		carry_end(y, EGRESS_UNREACHABLE, "out of memory");
	else
		y->speaker->pump(y);
}

static void greet_client(struct carry *y)
{
	/* Without a server to ask: what the client would rather have. */
	if (y->server)
		y->hello.protocol = tls_negotiated(y->server->ssl);
	else
		y->hello.protocol = y->hello.offered & TLS_HTTP2 ? TLS_HTTP2 : TLS_HTTP1;
	if (tls_server_name(y->client->ssl, y->h->ca, y->name) < 0) {
		carry_end(y, EGRESS_UNREACHABLE, "out of memory");
		return;
	}
	y->hello.decided = true;
	y->state = CARRY_CLIENT;
	set_timer(y, HANDSHAKE_US);
	conn_handshake(y->client);
}

static void refuse_hello(struct carry *y, const char *detail)
{
	carry_note(y, EGRESS_BLOCKED, detail);
	y->hello.refuse = true;
	conn_handshake(y->client); /* the alert goes out, and the conn fails */
}

static void step_hello(struct carry *y)
{
	if (y->client->failed) {
		/* What refuse_hello() said comes before what OpenSSL makes of it. */
		if (y->outcome == EGRESS_ALLOWED)
			carry_note(y, EGRESS_BLOCKED, y->client->why);
		carry_close(y);
		return;
	}
	if (!y->client->hello_waits || y->hello.refuse)
		return;
	EVENT_TEXT(y->f->sni, y->hello.sni);
	if (y->name_is_address ? y->hello.has_sni : !y->hello.has_sni) {
		refuse_hello(y, y->hello.has_sni ? "SNI to an address" : "no SNI");
	} else if (!y->name_is_address && strcmp(y->hello.sni, y->name) != 0) {
		refuse_hello(y, "SNI is not the name");
	} else if (!y->hello.offered) {
		refuse_hello(y, "TLS for a protocol that is not HTTP, where requests are checked");
	} else if (!flow_ask(y->f, NETWORK_TLS).allowed) {
		y->refused = true; /* each request is told why */
		greet_client(y);
	} else {
		y->state = CARRY_DIAL;
		carry_dial(y, NULL);
		if (y->server_failed)
			greet_client(y);
	}
}

static void step_server(struct carry *y)
{
	struct conn *s = y->server;

	if (s && !s->failed && s->handshaking)
		return;
	if (s && s->failed) {
		char why[160];

		snprintf(why, sizeof(why), "TLS with the server: %.130s", s->why);
		no_server(y, EGRESS_UNREACHABLE, why);
	}
	greet_client(y);
}

static void step_client(struct carry *y)
{
	char why[200];

	if (y->client->failed) {
		/* Most often a program that brings its own list of authorities, or pins one. */
		snprintf(why, sizeof(why), "the program ended the TLS handshake: %.120s",
			 y->client->why);
		carry_end(y, EGRESS_UNREACHABLE, why);
	} else if (!y->client->handshaking) {
		speak(y, y->hello.protocol == TLS_HTTP2 && y->hello.has_alpn);
	}
}

static void step_peek(struct carry *y)
{
	struct conn *c = y->client;
	char start[sizeof(PREFACE) - 1];
	ev_ssize_t n = evbuffer_copyout(c->in, start, sizeof(start));

	if (c->failed || (n <= 0 && c->eof)) {
		carry_close(y);
		return;
	}
	if (n <= 0 || y->dial)
		return;
	if (y->f->door == FLOW_FORWARD || memcmp(start, PREFACE, (size_t)n) != 0) {
		speak(y, false);
		return;
	}
	if ((size_t)n < sizeof(start) && !c->eof)
		return;
	/* HTTP/2 without TLS, as gRPC speaks it. The server has to be there first, as with TLS. */
	if (!y->server && !y->server_failed && !y->refused) {
		y->refused = !flow_ask(y->f, NETWORK_HTTP).allowed;
		if (!y->refused)
			carry_dial(y, NULL);
		if (y->dial)
			return;
	}
	speak(y, true);
}

static void step(struct carry *y)
{
	switch (y->state) {
	case CARRY_HELLO: step_hello(y); break;
	case CARRY_DIAL: /* TLS: nobody to dial after all */
		if (y->server_failed)
			greet_client(y);
		break;
	case CARRY_SERVER: step_server(y); break;
	case CARRY_CLIENT: step_client(y); break;
	case CARRY_PEEK: step_peek(y); break;
	case CARRY_SPEAK: y->speaker->pump(y); break;
	case CARRY_LINGER: linger(y); break;
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct carry *y = arg;

	(void)fd;
	(void)what;
	switch (y->state) {
	case CARRY_SPEAK:
		y->paused = false;
		y->speaker->pump(y);
		break;
	case CARRY_SERVER:
		no_server(y, EGRESS_UNREACHABLE, "TLS with the server: no answer within 30 s");
		greet_client(y);
		break;
	case CARRY_LINGER: carry_close(y); break;
	default: carry_end(y, EGRESS_BLOCKED, "no TLS handshake within 30 s"); break;
	}
}

void carry_expect_head(struct carry *y, bool begun)
{
	uint64_t us = y->h->head_us;
	struct timeval tv = {.tv_sec = (time_t)(us / 1000000),
			     .tv_usec = (suseconds_t)(us % 1000000)};

	if (!begun)
		event_del(y->head_timer);
	else if (!event_pending(y->head_timer, EV_TIMEOUT, NULL))
		event_add(y->head_timer, &tv);
}

static void on_head_timer(evutil_socket_t fd, short what, void *arg)
{
	struct carry *y = arg;

	(void)fd;
	(void)what;
	if (y->paused) /* it is us who do not read */
		carry_expect_head(y, true);
	else if (y->state == CARRY_SPEAK)
		y->speaker->late(y);
	else if (y->state == CARRY_PEEK)
		carry_end(y, EGRESS_BLOCKED, CARRY_LATE);
}

void http_take(struct flow *f)
{
	struct http *h = f->e->http;
	struct carry *y = calloc(1, sizeof(*y));
	SSL *ssl = NULL;
	int on = 1;

	if (!y) {
		flow_end(f, EGRESS_UNREACHABLE, "out of memory");
		return;
	}
	if (f->protocol == NETWORK_TLS && f->door != FLOW_FORWARD && !h->tls) {
		free(y);
		flow_refuse(f, f->rule, "TLS to be opened, which this box was not started for");
		return;
	}
	*y = (struct carry){.h = h, .f = f, .outcome = EGRESS_ALLOWED};
	y->tls = f->protocol == NETWORK_TLS && f->door != FLOW_FORWARD;
	y->name_is_address = f->host[0] == '\0';
	if (y->name_is_address)
		inet_ntop(f->family ? f->family : AF_INET, &f->address, y->name, sizeof(y->name));
	else
		EVENT_TEXT(y->name, f->host);
	f->carrier = &carrier;
	f->carried = y;
	setsockopt(f->client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	y->timer = event_new(f->e->base, -1, 0, on_timer, y);
	y->head_timer = event_new(f->e->base, -1, 0, on_head_timer, y);
	if (y->tls)
		ssl = tls_server(h->tls, &y->hello);
	if (y->timer && y->head_timer && (!y->tls || ssl))
		y->client = conn_new(f->e->base, f->client, false, ssl, on_conn, y);
	else
		SSL_free(ssl);
	if (!y->client) {
		carry_end(y, EGRESS_UNREACHABLE, "out of memory");
		return;
	}
	if (y->tls) {
		y->state = CARRY_HELLO;
		set_timer(y, HANDSHAKE_US);
		conn_handshake(y->client);
	} else {
		y->state = CARRY_PEEK;
		/* That there is something was seen when it was looked at. */
		carry_expect_head(y, true);
		conn_read(y->client, true);
	}
}

static void drop(struct flow *f)
{
	struct carry *y = f->carried;

	if (y->state == CARRY_SPEAK)
		conn_reset(y->client);
	let_go(y);
	f->carrier = NULL;
	f->carried = NULL;
}

static bool covered(struct flow *f)
{
	struct carry *y = f->carried;

	/* A proxy's client has no host of its own, and one that was refused is refused again. */
	if (f->door != FLOW_FORWARD && !y->refused && !flow_covered(f))
		return false;
	return !y->speaker || y->speaker->covered(y);
}

static const struct flow_carrier carrier = {.drop = drop, .covered = covered};
