/* HTTP/1.1 between the client and the server of a flow: one request at a time, each checked, each
 * written anew.
 *
 * Process: the broker, confined. Hostile: both sides. Nothing is passed on as it came: heads are
 * parsed (h1_parse.c) and written from what was parsed, bodies are cut out by their framing and
 * framed again, so that the server can't see another request in the bytes than was checked here.
 * Bodies are not kept: what one side does not take is not read from the other. */
#include "egress/http/h1.h"

#include <stdio.h>
#include <strings.h>

/* A refused request's body is read and thrown away up to this, so that the connection stays usable;
 * with more to come it is closed. */
#define DISCARD_MAX (256u << 10)

/* ---------------------------------------------------------------- writing */

bool h1_put_fields(struct evbuffer *b, const struct head *h)
{
	for (size_t i = 0; i < h->nfields; i++)
		if (!h1_put(b, head_name(h, i)) || !h1_put(b, ": ") ||
		    evbuffer_add(b, head_value(h, i), h->fields[i].value_len) < 0 ||
		    !h1_put(b, "\r\n"))
			return false;
	return true;
}

static bool write_request(struct carry *y)
{
	struct h1 *s = y->h1;
	struct head *h = &s->x.request;
	struct evbuffer *out = y->server->out;
	const char *authority = head_text(h, h->authority);
	bool ok = h1_put(out, head_text(h, h->method)) && h1_put(out, " ") &&
		  h1_put(out, head_text(h, h->target)) &&
		  h1_put(out, h->minor ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");

	if (authority) {
		head_remove(h, "host");
		ok = ok && h1_put(out, "Host: ") && h1_put(out, authority) && h1_put(out, "\r\n");
	} else if (!head_get(h, "host", NULL)) {
		ok = ok && h1_put(out, "Host: ") && h1_put(out, y->name) && h1_put(out, "\r\n");
	}
	ok = ok && h1_put_fields(out, h);
	if (s->ask_framing.body == H1_CHUNKED)
		ok = ok && h1_put(out, "Transfer-Encoding: chunked\r\n");
	if (s->websocket)
		ok = ok && h1_put(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (!s->ask_framing.keep_alive)
		ok = ok && h1_put(out, "Connection: close\r\n");
	else if (h->minor == 0)
		ok = ok && h1_put(out, "Connection: keep-alive\r\n");
	return ok && h1_put(out, "\r\n");
}

/* ---------------------------------------------------------------- answers of our own */

static bool write_own(struct carry *y, const struct answer *a)
{
	struct h1 *s = y->h1;

	return evbuffer_add_printf(y->client->out,
				   "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
				   "Cache-Control: no-store\r\n%s%s\r\n",
				   a->status, a->reason, a->type, a->body.len,
				   a->policy ? "X-Pale-Blocked: policy\r\n" : "",
				   s->close		  ? "Connection: close\r\n"
				   : s->client_minor == 0 ? "Connection: keep-alive\r\n"
							  : "") > 0 &&
	       (s->head_only || evbuffer_add(y->client->out, a->body.data, a->body.len) == 0);
}

void h1_break(struct carry *y)
{
	conn_reset(y->client);
	y->client->failed = true;
	y->h1->close = true;
	y->h1->answering = ANSWER_DONE;
}

void h1_answer_verdict(struct carry *y)
{
	struct h1 *s = y->h1;
	bool half = s->asking == ASK_BODY && y->server;
	struct answer a;

	if (!s->x.verdict.status) {
		s->x.verdict.status = 503;
		s->x.verdict.outcome = EGRESS_UNREACHABLE;
		EVENT_TEXT(s->x.verdict.detail, "out of memory");
	}
	/* The server must not take half a request for a whole one. */
	if (half && s->answering != ANSWER_NONE)
		carry_drop_server(y);
	if (half && y->tls)
		s->close = true; /* a client's TLS belongs to one server's */
	if (s->answering == ANSWER_DONE) {
		s->close = true;
		return;
	}
	s->own = s->discard = true;
	if (s->answering == ANSWER_BODY) {
		h1_break(y);
		return;
	}
	/* A client that waits for 100 may send its body now, or not: so its next bytes can't be
	 * told apart. */
	if (s->asking != ASK_DONE &&
	    (s->expects || (s->ask_framing.body == H1_LENGTH && s->ask_left > DISCARD_MAX)))
		s->close = true;
	s->x.status = (unsigned)s->x.verdict.status;
	if (answer_make(y, &s->x, &a) < 0 || !write_own(y, &a))
		s->close = true;
	else
		s->x.in = s->head_only ? 0 : a.body.len;
	answer_done(&a);
	s->answering = ANSWER_DONE;
}

void h1_no_answer(struct carry *y, enum egress_outcome outcome, const char *detail)
{
	struct verdict *v = &y->h1->x.verdict;

	y->h1->close = y->h1->close || y->server;
	v->status = 502;
	v->outcome = outcome;
	EVENT_TEXT(v->detail, detail);
	h1_answer_verdict(y);
}

/* What can't be read can't be followed by anything. */
static void refuse_parse(struct carry *y, int status, const char *why)
{
	struct h1 *s = y->h1;

	s->x.verdict = (struct verdict){.status = status, .outcome = EGRESS_BLOCKED, .rule = -1};
	EVENT_TEXT(s->x.verdict.detail, why);
	s->close = true;
	s->asking = ASK_DONE;
	h1_answer_verdict(y);
}

/* ---------------------------------------------------------------- from the client */

static void begin_request(struct carry *y)
{
	struct h1 *s = y->h1;
	const struct head *h = &s->x.request;
	const char *expect = head_get(h, "expect", NULL);
	const char *upgrade = head_get(h, "upgrade", NULL);

	s->ask_framing = h1_request_framing(h);
	s->ask_left = s->ask_framing.length;
	s->client_minor = h->minor;
	s->close = !s->ask_framing.keep_alive;
	s->head_only = strcmp(head_text(h, h->method), "HEAD") == 0;
	s->expects = expect && strcasecmp(expect, "100-continue") == 0 &&
		     s->ask_framing.body != H1_NONE && h->minor == 1;
	/* Other protocols than WebSocket are not let in: the field goes with the other ones for the
	 * next hop, and the server answers in HTTP. */
	s->websocket = upgrade && strcasecmp(upgrade, "websocket") == 0 &&
		       head_lists(h, "connection", "upgrade") && s->ask_framing.body == H1_NONE &&
		       h->minor == 1 && strcmp(head_text(h, h->method), "GET") == 0;
	if (s->ask_framing.body == H1_CHUNKED) {
		h1_chunks_done(&s->ask_chunks);
		h1_chunks_init(&s->ask_chunks, true);
	}
	s->asking = s->ask_framing.body == H1_NONE ? ASK_DONE : ASK_BODY;
	exchange_check(y, &s->x);
}

/* Has the connection to be made to the host of this request? */
static bool has_server(struct carry *y)
{
	struct h1 *s = y->h1;
	struct flow *f = y->f;

	if (f->door == FLOW_FORWARD && y->server &&
	    (strcmp(s->server_host, s->x.host) != 0 || s->server_port != s->x.port ||
	     y->server->eof || y->server->failed))
		carry_drop_server(y);
	if (y->server)
		return true;
	s->reused = false;
	return false;
}

static void send_request(struct carry *y)
{
	struct h1 *s = y->h1;

	s->asking = s->ask_framing.body == H1_NONE ? ASK_DONE : ASK_BODY;
	s->answering = ANSWER_HEAD;
	s->answer_scan = (struct h1_scan){0};
	head_done(&s->answer);
	if (!write_request(y))
		h1_no_answer(y, EGRESS_UNREACHABLE, "out of memory");
}

static bool read_head(struct carry *y)
{
	struct h1 *s = y->h1;
	struct evbuffer *in = y->client->in;
	size_t len = evbuffer_get_length(in);
	const char *why = "", *data;
	ssize_t n;
	int r;

	if (len > HEAD_MAX_BYTES)
		len = HEAD_MAX_BYTES;
	if (len == 0)
		return false;
	if (s->ask_scan.seen == 0)
		exchange_begin(&s->x);
	data = (const char *)evbuffer_pullup(in, (ev_ssize_t)len);
	n = data ? h1_scan(&s->ask_scan, data, len) : -ENOMEM;
	if (n == 0 && len < HEAD_MAX_BYTES)
		return false;
	if (n <= 0) {
		refuse_parse(y, n == -EBADMSG ? 400 : 431,
			     n == -EBADMSG ? "a line that does not end in CRLF, or a NUL"
					   : "too large a head");
		return true;
	}
	r = h1_parse_request(&s->x.request, data, (size_t)n, &why);
	evbuffer_drain(in, (size_t)n);
	s->ask_scan = (struct h1_scan){0};
	if (r) {
		refuse_parse(y, r, why);
		return true;
	}
	begin_request(y);
	if (s->x.verdict.status) {
		h1_answer_verdict(y);
	} else if (has_server(y)) {
		send_request(y);
	} else if (y->server_failed && y->f->door != FLOW_FORWARD) {
		h1_no_answer(y, y->outcome, y->detail);
	} else {
		s->asking = ASK_DIAL;
		carry_dial(y, &s->x);
	}
	return true;
}

/* Bytes of the request's body. false: a placeholder was in them. */
static bool body_out(struct carry *y, struct evbuffer *from, size_t n)
{
	struct h1 *s = y->h1;
	const char *data = (const char *)evbuffer_pullup(from, (ev_ssize_t)n);

	if (s->discard) {
		s->discarded += n;
		evbuffer_drain(from, n);
		return true;
	}
	if (!data || !exchange_check_body(y, &s->x, data, n))
		return false;
	return evbuffer_remove_buffer(from, y->server->out, n) == (int)n;
}

static bool read_length(struct carry *y)
{
	struct h1 *s = y->h1;
	struct evbuffer *in = y->client->in;
	size_t n = evbuffer_get_length(in);

	if (n > s->ask_left)
		n = (size_t)s->ask_left;
	if (n > CONN_HIGH)
		n = CONN_HIGH;
	if (n == 0)
		return false;
	if (!body_out(y, in, n)) {
		h1_answer_verdict(y);
		return true;
	}
	s->ask_left -= n;
	if (s->ask_left == 0)
		s->asking = ASK_DONE;
	return true;
}

static bool write_trailers(struct carry *y, struct h1_chunks *c)
{
	struct h1 *s = y->h1;
	_cleanup_head_ struct head t = {0};
	char detail[160];
	const char *why;

	head_init(&t);
	if (h1_parse_fields(&t, c->trailers.data ? c->trailers.data : "", c->trailers.len, &why)) {
		s->x.verdict.status = 400;
		s->x.verdict.outcome = EGRESS_BLOCKED;
		snprintf(s->x.verdict.detail, sizeof(s->x.verdict.detail), "trailers: %s", why);
		return false;
	}
	head_drop_hops(&t);
	/* What says whom the request is for, or where it ends, has been said. */
	head_remove(&t, "host");
	head_remove(&t, "content-length");
	head_remove(&t, "authorization");
	if (secrets_put(y->h->secrets, s->x.host, false, &t, detail) < 0) {
		s->x.verdict.status = 403;
		s->x.verdict.outcome = EGRESS_EXFILTRATION;
		snprintf(s->x.verdict.detail, sizeof(s->x.verdict.detail), "trailers: %.140s",
			 detail);
		return false;
	}
	return h1_put(y->server->out, "0\r\n") && h1_put_fields(y->server->out, &t) &&
	       h1_put(y->server->out, "\r\n");
}

static bool read_chunks(struct carry *y)
{
	struct h1 *s = y->h1;
	struct evbuffer *in = y->client->in;
	size_t used, len, n = evbuffer_get_contiguous_space(in);
	const char *data, *body;
	int r;

	if (n == 0)
		return false;
	data = (const char *)evbuffer_pullup(in, (ev_ssize_t)n);
	r = h1_chunks_read(&s->ask_chunks, data, n, &used, &body, &len);
	if (r < 0) {
		s->close = true;
		if (!s->own) {
			s->x.verdict.status = 400;
			s->x.verdict.outcome = EGRESS_BLOCKED;
			EVENT_TEXT(s->x.verdict.detail, "the body's chunks are malformed");
			h1_answer_verdict(y);
		}
		s->asking = ASK_DONE;
		return true;
	}
	if (s->discard) {
		s->discarded += len;
	} else if (len) {
		if (!exchange_check_body(y, &s->x, body, len)) {
			h1_answer_verdict(y);
			s->close = true;
			return true;
		}
		if (evbuffer_add_printf(y->server->out, "%zx\r\n", len) < 0 ||
		    evbuffer_add(y->server->out, body, len) < 0 ||
		    !h1_put(y->server->out, "\r\n")) {
			h1_no_answer(y, EGRESS_UNREACHABLE, "out of memory");
			return true;
		}
	}
	evbuffer_drain(in, used);
	if (r == 1) {
		if (!s->discard && !write_trailers(y, &s->ask_chunks)) {
			s->close = true;
			h1_answer_verdict(y);
		}
		s->asking = ASK_DONE;
	}
	return true;
}

static bool pump_request(struct carry *y)
{
	struct h1 *s = y->h1;

	if (s->asking == ASK_NONE)
		return read_head(y);
	if (s->asking == ASK_DIAL) {
		if (y->dial)
			return false;
		if (y->server) {
			EVENT_TEXT(s->server_host, s->x.host);
			s->server_port = s->x.port;
			send_request(y);
		} else {
			s->asking = s->ask_framing.body == H1_NONE ? ASK_DONE : ASK_BODY;
			h1_no_answer(y, y->outcome, y->detail);
		}
		return true;
	}
	if (s->asking != ASK_BODY)
		return false;
	if (s->discard) {
		if (s->close || s->discarded > DISCARD_MAX) {
			s->close = true;
			s->asking = ASK_DONE;
			return true;
		}
	} else if (!y->server || !conn_room(y->server)) {
		return false;
	}
	return s->ask_framing.body == H1_LENGTH ? read_length(y) : read_chunks(y);
}

/* ---------------------------------------------------------------- the two together */

/* Both halves of the exchange are over. false: the flow has been ended. */
static bool finish(struct carry *y)
{
	struct h1 *s = y->h1;

	exchange_tell(y, &s->x);
	if (y->client->failed) {
		carry_close(y);
		return false;
	}
	if (s->close) {
		carry_linger(y);
		return false;
	}
	if (!s->own)
		s->reused = true;
	exchange_done(&s->x);
	head_done(&s->answer);
	s->asking = ASK_NONE;
	s->answering = ANSWER_NONE;
	s->own = s->discard = s->answer_chunked = s->expects = s->websocket = false;
	s->discarded = 0;
	return true;
}

static void pump(struct carry *y)
{
	struct h1 *s = y->h1;
	bool moved = true;

	while (moved && !s->relay) {
		moved = pump_request(y);
		moved = h1_pump_answer(y) || moved;
		/* An answer may be complete before its request; then the rest of that still has to
		 * be read. */
		if (s->answering == ANSWER_DONE && (s->asking == ASK_DONE || s->close)) {
			if (!finish(y))
				return;
			moved = true;
		}
	}
	if (s->relay) {
		carry_expect_head(y, false);
		h1_pump_relay(y);
		return;
	}
	if (y->server)
		conn_flush(y->server);
	conn_flush(y->client);
	if (!carry_account(y))
		return;
	if (y->client->failed || (y->client->eof && s->asking == ASK_BODY)) {
		if (s->asking != ASK_NONE && !s->x.status && !s->x.verdict.detail[0])
			EVENT_TEXT(s->x.verdict.detail, "the program ended the connection");
		if (s->asking != ASK_NONE)
			exchange_tell(y, &s->x);
		carry_close(y);
		return;
	}
	if (y->client->eof && s->asking == ASK_NONE) { /* its last answer may still be on its way */
		carry_linger(y);
		return;
	}
	/* A server that ends a connection on which nothing is asked ends the client's too; so does
	 * one that says anything unasked. */
	if (s->asking == ASK_NONE && y->server &&
	    (y->server->eof || y->server->failed || evbuffer_get_length(y->server->in))) {
		if (y->f->door == FLOW_FORWARD) {
			carry_drop_server(y);
		} else {
			carry_linger(y);
			return;
		}
	}
	carry_expect_head(y, s->asking == ASK_NONE && evbuffer_get_length(y->client->in));
	carry_interest(y, true, conn_room(y->client));
}

static void h1_free(struct carry *y)
{
	struct h1 *s = y->h1;

	if (!s)
		return;
	/* One that was in its middle when a cap, new rules or a lack of memory ended the flow. */
	if (s->x.request.method)
		exchange_tell(y, &s->x);
	exchange_done(&s->x);
	head_done(&s->answer);
	h1_chunks_done(&s->ask_chunks);
	h1_chunks_done(&s->answer_chunks);
	mask_done(&s->mask);
	mask_done(&s->relay_mask);
	if (s->piece)
		evbuffer_free(s->piece);
	free(s);
	y->h1 = NULL;
}

static bool h1_covered(struct carry *y)
{
	return exchange_covered(y, &y->h1->x);
}

static void late(struct carry *y)
{
	struct h1 *s = y->h1;

	if (s->asking == ASK_NONE && s->answering == ANSWER_NONE &&
	    evbuffer_get_length(y->client->in))
		refuse_parse(y, 408, CARRY_LATE);
	pump(y);
}

static const struct speaker speaker = {
	.pump = pump, .free = h1_free, .covered = h1_covered, .late = late};

int h1_start(struct carry *y)
{
	struct h1 *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	y->h1 = s;
	y->speaker = &speaker;
	head_init(&s->x.request);
	head_init(&s->answer);
	exchange_done(&s->x);
	mask_init(&s->mask, NULL);
	mask_init(&s->relay_mask, NULL);
	h1_chunks_init(&s->ask_chunks, true);
	h1_chunks_init(&s->answer_chunks, false);
	s->piece = evbuffer_new();
	if (!s->piece) {
		h1_free(y);
		y->speaker = NULL;
		return -ENOMEM;
	}
	return 0;
}
