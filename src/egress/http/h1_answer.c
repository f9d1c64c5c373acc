/* HTTP/1.1: what comes from the server, and WebSockets after it has agreed to them.
 *
 * Process: the broker, confined. Hostile: the server's bytes; see h1.c. */
#include "egress/http/h1.h"

#include <stdio.h>
#include <strings.h>

/* ---------------------------------------------------------------- writing */

/* One chunk of what is in piece, which is empty then. */
static bool put_chunk(struct evbuffer *to, struct evbuffer *piece)
{
	size_t n = evbuffer_get_length(piece);

	return n == 0 || (evbuffer_add_printf(to, "%zx\r\n", n) > 0 &&
			  evbuffer_add_buffer(to, piece) == 0 && h1_put(to, "\r\n"));
}

static bool write_answer(struct carry *y)
{
	struct h1 *s = y->h1;
	const struct head *h = &s->answer;
	struct evbuffer *out = y->client->out;
	const char *reason = head_text(h, h->reason);
	bool ok = evbuffer_add_printf(out, "HTTP/1.%d %u %s\r\n", s->client_minor ? 1 : h->minor,
				      h->status, reason ? reason : "") > 0 &&
		  h1_put_fields(out, h);

	if (h->status == 101)
		ok = ok && h1_put(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (s->answer_chunked)
		ok = ok && h1_put(out, "Transfer-Encoding: chunked\r\n");
	if (h->status >= 200 && s->close)
		ok = ok && h1_put(out, "Connection: close\r\n");
	else if (h->status >= 200 && s->client_minor == 0)
		ok = ok && h1_put(out, "Connection: keep-alive\r\n");
	return ok && h1_put(out, "\r\n");
}

/* ---------------------------------------------------------------- from the server */

/* The server's part of the exchange is over; piece: the last of the body. */
static void end_answer(struct carry *y)
{
	struct h1 *s = y->h1;

	if (s->answer_chunked) {
		_cleanup_head_ struct head t = {0};
		const char *why;

		head_init(&t);
		if (s->answer_framing.body == H1_CHUNKED && s->answer_chunks.trailers.len &&
		    h1_parse_fields(&t, s->answer_chunks.trailers.data,
				    s->answer_chunks.trailers.len, &why))
			head_done(&t); /* what can't be read is left out */
		head_drop_hops(&t);
		head_remove(&t, "content-length");
		if (s->x.secret_host)
			secrets_mask_head(y->h->secrets, &t);
		if (!h1_put(y->client->out, "0\r\n") || !h1_put_fields(y->client->out, &t) ||
		    !h1_put(y->client->out, "\r\n"))
			y->client->failed = true;
	}
	s->answering = ANSWER_DONE;
}

/* What is in piece goes to the client. */
static void flush_piece(struct carry *y, bool last)
{
	struct h1 *s = y->h1;

	if (last && mask_end(&s->mask, s->piece) < 0)
		y->client->failed = true;
	if (s->answer_chunked ? !put_chunk(y->client->out, s->piece)
			      : evbuffer_add_buffer(y->client->out, s->piece) < 0)
		y->client->failed = true;
}

static void break_answer(struct carry *y, const char *detail)
{
	struct h1 *s = y->h1;

	if (!s->x.verdict.status)
		EVENT_TEXT(s->x.verdict.detail, detail);
	h1_break(y);
}

static void server_gone(struct carry *y)
{
	struct h1 *s = y->h1;
	struct conn *c = y->server;
	char why[200];

	if (s->answering == ANSWER_BODY) {
		if (s->answer_framing.body == H1_UNTIL_CLOSE && c->eof) {
			flush_piece(y, true);
			end_answer(y);
			/* Whether such an end is one is for the client to say. */
			y->client->ragged = c->cut;
		} else {
			break_answer(y, "the server ended the connection within its answer");
		}
		return;
	}
	/* A kept connection that ends just now: the client sees what it would have seen, an end
	 * without an answer, and asks again. */
	if (s->reused && s->answer_scan.seen == 0) {
		break_answer(y, "the server ended a kept connection");
		return;
	}
	snprintf(why, sizeof(why), "the server ended the connection without an answer%s%.100s",
		 c->why[0] ? ": " : "", c->why);
	h1_no_answer(y, EGRESS_UNREACHABLE, why);
}

static void got_answer(struct carry *y)
{
	struct h1 *s = y->h1;
	struct head *h = &s->answer;
	const char *upgrade = head_get(h, "upgrade", NULL);

	if (h->status == 101 && (!s->websocket || !upgrade || strcasecmp(upgrade, "websocket"))) {
		h1_no_answer(y, EGRESS_BLOCKED,
			     "the server switched to a protocol that was not asked for");
		return;
	}
	s->answer_framing = h1_answer_framing(h, s->head_only);
	s->answer_left = s->answer_framing.length;
	exchange_check_answer(y, &s->x, h);
	if (s->x.verdict.status) {
		s->close = true;
		h1_answer_verdict(y);
		carry_drop_server(y);
		return;
	}
	/* An upgrade that is offered can't be taken; it is not passed on. */
	head_drop_hops(h);
	if (h->status >= 200) {
		s->x.status = h->status;
		s->close = s->close || !s->answer_framing.keep_alive;
		s->answer_chunked = s->answer_framing.body == H1_CHUNKED && s->client_minor == 1;
		if (s->answer_framing.body == H1_CHUNKED && s->client_minor == 0)
			s->close = true;
	} else if (h->status == 101) {
		s->x.status = 101;
		s->relay = true;
		mask_init(&s->relay_mask, s->x.secret_host ? y->h->secrets : NULL);
	}
	if ((h->status >= 200 || s->client_minor == 1) && !write_answer(y))
		y->client->failed = true;
	if (h->status == 100)
		s->expects = false;
	if (h->status < 200) {
		head_done(h); /* the next head is the answer, or one more of these */
		s->answer_scan = (struct h1_scan){0};
		return;
	}
	mask_done(&s->mask);
	mask_init(&s->mask, s->x.secret_host ? y->h->secrets : NULL);
	if (s->answer_framing.body == H1_CHUNKED) {
		h1_chunks_done(&s->answer_chunks);
		h1_chunks_init(&s->answer_chunks, false);
	}
	s->answering = ANSWER_BODY;
	if (s->answer_framing.body == H1_NONE)
		s->answering = ANSWER_DONE;
}

static bool read_answer_head(struct carry *y)
{
	struct h1 *s = y->h1;
	struct evbuffer *in = y->server->in;
	size_t len = evbuffer_get_length(in);
	const char *why = "too large a head", *data;
	ssize_t n;

	if (len > HEAD_MAX_BYTES)
		len = HEAD_MAX_BYTES;
	if (len == 0)
		return false;
	data = (const char *)evbuffer_pullup(in, (ev_ssize_t)len);
	n = data ? h1_scan(&s->answer_scan, data, len) : -ENOMEM;
	if (n == 0 && len < HEAD_MAX_BYTES)
		return false;
	if (n == -EBADMSG)
		why = "a line that does not end in CRLF, or a NUL";
	head_init(&s->answer);
	if (n > 0 && h1_parse_answer(&s->answer, data, (size_t)n, &why) == 0) {
		evbuffer_drain(in, (size_t)n);
		got_answer(y);
	} else {
		char detail[160];

		snprintf(detail, sizeof(detail), "the server's answer is not HTTP: %.100s", why);
		h1_no_answer(y, EGRESS_UNREACHABLE, detail);
		s->close = true;
		carry_drop_server(y);
	}
	return true;
}

/* As much of the body as came. */
static bool read_answer_body(struct carry *y)
{
	struct h1 *s = y->h1;
	struct evbuffer *in = y->server->in;
	bool done = false, moved = false;
	size_t n;

	while (!done && (n = evbuffer_get_contiguous_space(in)) > 0 &&
	       evbuffer_get_length(s->piece) < CONN_HIGH) {
		const char *data = (const char *)evbuffer_pullup(in, (ev_ssize_t)n), *body = data;
		size_t used = n, len = n;

		if (s->answer_framing.body == H1_CHUNKED) {
			int r = h1_chunks_read(&s->answer_chunks, data, n, &used, &body, &len);

			if (r < 0) {
				break_answer(y, "the chunks of the server's answer are malformed");
				return true;
			}
			done = r == 1;
		} else if (s->answer_framing.body == H1_LENGTH) {
			used = len = n < s->answer_left ? n : (size_t)s->answer_left;
			s->answer_left -= len;
			done = s->answer_left == 0;
		}
		s->x.in += len;
		/* Whole pieces change hands without a copy where nothing is to be masked. */
		if (!s->mask.s && s->answer_framing.body != H1_CHUNKED) {
			if (evbuffer_remove_buffer(in, s->piece, used) != (int)used)
				y->client->failed = true;
		} else {
			if (mask_add(&s->mask, body, len, s->piece) < 0)
				y->client->failed = true;
			evbuffer_drain(in, used);
		}
		moved = true;
	}
	if (moved)
		flush_piece(y, done);
	if (done)
		end_answer(y);
	return moved;
}

bool h1_pump_answer(struct carry *y)
{
	struct h1 *s = y->h1;

	if (s->answering != ANSWER_HEAD && s->answering != ANSWER_BODY)
		return false;
	if (!conn_room(y->client))
		return false;
	if (s->answering == ANSWER_HEAD ? read_answer_head(y) : read_answer_body(y))
		return true;
	if (y->server && (y->server->eof || y->server->failed)) {
		server_gone(y);
		return true;
	}
	return false;
}

/* ---------------------------------------------------------------- after 101 */

/* Then the connection ends: both sides see it broken off. */
static bool out_has_placeholder(struct carry *y, struct evbuffer *b)
{
	struct h1 *s = y->h1;
	struct evbuffer_ptr at;
	struct evbuffer_iovec v;

	evbuffer_ptr_set(b, &at, 0, EVBUFFER_PTR_SET);
	while (evbuffer_peek(b, -1, &at, &v, 1) > 0 && v.iov_len > 0) {
		if (websocket_sent(&s->websocket_out, y->h->secrets, v.iov_base, v.iov_len)) {
			s->x.verdict.status = 403;
			s->x.verdict.outcome = EGRESS_EXFILTRATION;
			EVENT_TEXT(s->x.verdict.detail,
				   "a secret's placeholder in a WebSocket's message");
			h1_break(y);
			return true;
		}
		if (evbuffer_ptr_set(b, &at, v.iov_len, EVBUFFER_PTR_ADD) < 0)
			break;
	}
	return false;
}

static void relay_way(struct carry *y, struct conn *from, struct conn *to, bool out)
{
	struct h1 *s = y->h1;
	size_t n = evbuffer_get_length(from->in);

	if (n == 0 || !conn_room(to))
		return;
	if (out) {
		s->x.out += n;
		if (y->h->secrets && out_has_placeholder(y, from->in))
			return;
		evbuffer_add_buffer(to->out, from->in);
	} else {
		s->x.in += n;
		if (mask_move(&s->relay_mask, from->in, to->out) < 0)
			to->failed = true;
	}
}

void h1_pump_relay(struct carry *y)
{
	struct h1 *s = y->h1;
	struct conn *c = y->client, *v = y->server;

	relay_way(y, c, v, true);
	relay_way(y, v, c, false);
	if (c->eof && evbuffer_get_length(c->in) == 0)
		v->ending = true;
	if (v->eof && evbuffer_get_length(v->in) == 0 && !c->ending) {
		if (mask_end(&s->relay_mask, c->out) < 0)
			c->failed = true;
		c->ending = true;
	}
	conn_flush(v);
	conn_flush(c);
	if (!carry_account(y))
		return;
	if (c->failed || v->failed || (c->ended && v->ended)) {
		exchange_tell(y, &s->x);
		carry_end(y, EGRESS_ALLOWED, NULL);
		return;
	}
	carry_interest(y, conn_room(v), conn_room(c));
}
