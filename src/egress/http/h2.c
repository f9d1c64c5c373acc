/* HTTP/2 between the client and the server of a flow: a session with each (nghttp2), and streams in
 * pairs.
 *
 * Process: the broker, confined. Hostile: both sides. nghttp2 checks frames, HPACK and the rules of
 * HTTP within them; it also bounds what a client can make it queue: CONTINUATION frames, answers to
 * SETTINGS and PING, and streams that are reset as soon as they are begun. What is ours is bounded
 * by flow control: a byte of a body is confirmed to its sender when it has left for the receiver,
 * so no more waits here than the windows below, whatever the two sides do.
 *
 * Both sides speak HTTP/2 or none does (tls.c), so nothing is translated. */
#include "egress/http/h2.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---------------------------------------------------------------- the client's session */

static int on_client_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct carry *y = user;
	struct h2_stream *st;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	st = h2_stream_new(y, frame->hd.stream_id);
	if (!st) {
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
					  NGHTTP2_REFUSED_STREAM);
		return 0;
	}
	nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, st);
	return 0;
}

/* 0, or what nghttp2 resets the stream for. */
static int keep_field(struct head *h, const uint8_t *name, size_t name_len, const uint8_t *value,
		      size_t value_len)
{
	static const struct {
		const char *name;
		size_t at;
	} pseudos[] = {
		{":method", offsetof(struct head, method)},
		{":path", offsetof(struct head, target)},
		{":scheme", offsetof(struct head, scheme)},
		{":authority", offsetof(struct head, authority)},
	};
	int r;

	/* Values with NUL are refused by nghttp2; it is looked for because all that comes reads
	 * strings. */
	if (memchr(value, 0, value_len))
		return -EBADMSG;
	if (name_len && name[0] != ':') {
		r = head_add(h, (const char *)name, name_len, (const char *)value, value_len);
		return r;
	}
	if (name_len == 7 && memcmp(name, ":status", 7) == 0) {
		for (size_t i = 0; i < value_len && i < 3; i++)
			h->status = h->status * 10 + (unsigned)(value[i] - '0');
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(pseudos); i++)
		if (name_len == strlen(pseudos[i].name) &&
		    memcmp(name, pseudos[i].name, name_len) == 0)
			return head_store(h, (const char *)value, value_len,
					  (uint32_t *)(void *)((char *)h + pseudos[i].at));
	return -EBADMSG; /* :protocol and what else there may be */
}

static int on_client_field(nghttp2_session *session, const nghttp2_frame *frame,
			   const uint8_t *name, size_t name_len, const uint8_t *value,
			   size_t value_len, uint8_t flags, void *user)
{
	struct h2_stream *st = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	int r;

	(void)flags;
	(void)user;
	if (!st || st->too_large)
		return st ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	r = keep_field(st->began ? &st->up.trailers : &st->x.request, name, name_len, value,
		       value_len);
	if (r == -E2BIG && !st->began)
		st->too_large = true; /* read to the end, then answered */
	else if (r < 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return 0;
}

static int on_client_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_stream *st = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM, ok = true;

	(void)user;
	if (!st)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS) {
		if (!st->began)
			ok = h2_got_request(st, end);
		else if (!st->discard)
			ok = h2_got_trailers(st);
		if (end)
			h2_up_ended(st);
	} else if (frame->hd.type == NGHTTP2_DATA && end) {
		h2_up_ended(st);
	}
	return ok ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_client_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
			  size_t len, void *user)
{
	struct carry *y = user;
	struct h2 *s = y->h2;
	struct h2_stream *st = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	if (!st || st->discard) {
		nghttp2_session_consume(session, id, len);
		return 0;
	}
	if (!exchange_check_body(y, &st->x, data, len)) {
		nghttp2_session_consume(session, id, len);
		return h2_answer_verdict(st) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (evbuffer_add(st->up.body, data, len) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (s->server && st->server_id > 0)
		nghttp2_session_resume_data(s->server, st->server_id);
	return 0;
}

static int on_client_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct h2_stream *st = nghttp2_session_get_stream_user_data(session, id);

	(void)user;
	if (!st)
		return 0;
	nghttp2_session_set_stream_user_data(session, id, NULL);
	/* What was not confirmed counts against the whole connection. */
	nghttp2_session_consume_connection(session,
					   evbuffer_get_length(st->up.body) + st->up.taken);
	h2_drop_server(st, code ? code : NGHTTP2_CANCEL);
	if (code && !st->x.status && !st->x.verdict.detail[0])
		snprintf(st->x.verdict.detail, sizeof(st->x.verdict.detail),
			 "the stream was reset: %s", nghttp2_http2_strerror(code));
	h2_stream_free(st);
	return 0;
}

/* ---------------------------------------------------------------- the server's session */

static int on_server_field(nghttp2_session *session, const nghttp2_frame *frame,
			   const uint8_t *name, size_t name_len, const uint8_t *value,
			   size_t value_len, uint8_t flags, void *user)
{
	struct h2_stream *st = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (!st)
		return 0;
	if (keep_field(st->answered ? &st->down.trailers : &st->answer, name, name_len, value,
		       value_len) < 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return 0;
}

static int on_server_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct carry *y = user;
	struct h2_stream *st = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	bool end = frame->hd.flags & NGHTTP2_FLAG_END_STREAM, ok = true;

	if (frame->hd.type == NGHTTP2_GOAWAY) {
		y->h2->going = true;
		return 0;
	}
	if (!st)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS) {
		if (!st->answered) {
			ok = h2_got_answer(st, end);
		} else {
			head_drop_hops(&st->down.trailers);
			if (st->x.secret_host)
				secrets_mask_head(y->h->secrets, &st->down.trailers);
		}
	}
	if (ok && end && (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS))
		ok = h2_down_ended(st);
	return ok ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_server_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
			  size_t len, void *user)
{
	struct carry *y = user;
	struct h2_stream *st = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	if (!st || st->own) {
		nghttp2_session_consume(session, id, len);
		return 0;
	}
	st->x.in += len;
	if (mask_add(&st->mask, data, len, st->down.body) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	nghttp2_session_resume_data(y->h2->client, st->client_id);
	return 0;
}

/* A request that could not be sent after all: the server goes. */
static int on_server_unsent(nghttp2_session *session, const nghttp2_frame *frame, int code,
			    void *user)
{
	struct carry *y = user;
	struct h2_stream *st;

	(void)session;
	(void)code;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	TAILQ_FOREACH(st, &y->h2->streams, entry)
	if (st->server_id == frame->hd.stream_id) {
		st->server_id = 0;
		return h2_fail(st, NGHTTP2_REFUSED_STREAM) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return 0;
}

static int on_server_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct h2_stream *st = nghttp2_session_get_stream_user_data(session, id);

	(void)user;
	if (!st)
		return 0;
	nghttp2_session_set_stream_user_data(session, id, NULL);
	st->server_id = 0;
	if (st->own || (code == NGHTTP2_NO_ERROR && st->down.end))
		return 0;
	return h2_fail(st, code ? code : NGHTTP2_INTERNAL_ERROR) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* ---------------------------------------------------------------- moving */

/* false: the session is over, or broke a rule. */
static bool receive(struct conn *c, nghttp2_session *session)
{
	size_t n;

	while ((n = evbuffer_get_contiguous_space(c->in)) > 0 && conn_room(c)) {
		ssize_t used =
			nghttp2_session_mem_recv(session, evbuffer_pullup(c->in, (ev_ssize_t)n), n);

		if (used < 0) {
			snprintf(c->why, sizeof(c->why), "HTTP/2: %s", nghttp2_strerror((int)used));
			nghttp2_session_terminate_session(session, NGHTTP2_PROTOCOL_ERROR);
			return false;
		}
		evbuffer_drain(c->in, (size_t)used);
	}
	return true;
}

static bool send_out(struct conn *c, nghttp2_session *session)
{
	while (conn_room(c)) {
		const uint8_t *data;
		ssize_t n = nghttp2_session_mem_send(session, &data);

		if (n < 0)
			return false;
		if (n == 0)
			break;
		if (evbuffer_add(c->out, data, (size_t)n) < 0)
			return false;
	}
	return true;
}

/* No answer will come any more: those who wait are told. */
static void server_lost(struct carry *y, const char *why)
{
	struct h2 *s = y->h2;
	struct h2_stream *st;

	TAILQ_FOREACH(st, &s->streams, entry)
	{
		if (st->server_id <= 0 || st->own || st->down.end)
			continue;
		st->server_id = 0;
		carry_note(y, EGRESS_UNREACHABLE, why);
		if (st->answered)
			s->broken = !h2_fail(st, NGHTTP2_INTERNAL_ERROR) || s->broken;
		else
			s->broken = !h2_verdict(st, 502, EGRESS_UNREACHABLE, why) || s->broken;
	}
	nghttp2_session_del(s->server);
	s->server = NULL;
	s->going = true;
	carry_drop_server(y);
}

static void check_server(struct carry *y, bool ok)
{
	struct h2 *s = y->h2;
	struct conn *v = y->server;
	char why[200];

	if (!v || (ok && !v->failed && !(v->eof && evbuffer_get_length(v->in) == 0) &&
		   (nghttp2_session_want_read(s->server) || nghttp2_session_want_write(s->server))))
		return;
	snprintf(why, sizeof(why), "the server ended the connection%s%.100s", v->why[0] ? ": " : "",
		 v->why);
	server_lost(y, why);
}

/* Sends what the two sessions have to say, until neither has more or its conn is full: what leaves
 * for one side lets the other send more. */
static bool send_both(struct carry *y)
{
	struct h2 *s = y->h2;
	bool ok = true;

	do {
		if (y->server) {
			ok = send_out(y->server, s->server) && ok;
			conn_flush(y->server);
		}
		if (!send_out(y->client, s->client))
			s->broken = true;
		conn_flush(y->client);
	} while (h2_confirm(s));
	return ok;
}

/* Heads, resets and the like are not counted by flow control: a side that does not take them would
 * have the other's gathered here. */
static bool is_behind(nghttp2_session *to)
{
	return nghttp2_session_get_outbound_queue_size(to) > H2_QUEUE_MAX;
}

static void pump(struct carry *y)
{
	struct h2 *s = y->h2;
	struct conn *c = y->client;
	struct h2_stream *st;
	bool ok = true, begun = false;

	if (!s->broken)
		s->broken = !receive(c, s->client);
	if (y->server)
		ok = receive(y->server, s->server);
	ok = send_both(y) && ok;
	check_server(y, ok);
	if (s->going && !s->told_going) {
		/* The client opens no more streams here; those that are open go on. */
		s->told_going = true;
		nghttp2_submit_goaway(s->client, NGHTTP2_FLAG_NONE,
				      nghttp2_session_get_last_proc_stream_id(s->client),
				      NGHTTP2_NO_ERROR, NULL, 0);
	}
	(void)!send_both(y);
	y->idle = true;
	TAILQ_FOREACH(st, &s->streams, entry)
	{
		y->idle = y->idle && st->server_id <= 0;
		begun = begun || !st->began;
	}
	carry_expect_head(y, begun);
	if (!carry_account(y))
		return;
	if (c->failed || (c->eof && evbuffer_get_length(c->in) == 0)) {
		carry_close(y);
		return;
	}
	if (s->broken || (s->going && s->nstreams == 0) || !nghttp2_session_want_read(s->client)) {
		if (!s->broken && nghttp2_session_want_write(s->client))
			return; /* what is left to say goes out first */
		if (s->broken)
			carry_note(y, EGRESS_BLOCKED, c->why[0] ? c->why : "out of memory");
		carry_linger(y);
		return;
	}
	carry_interest(y, !s->server || !is_behind(s->server), !is_behind(s->client));
}

static void h2_free(struct carry *y)
{
	struct h2 *s = y->h2;

	if (!s)
		return;
	/* First, while streams can still be told of: deleting a session calls nothing back. */
	while (!TAILQ_EMPTY(&s->streams))
		h2_stream_free(TAILQ_FIRST(&s->streams));
	nghttp2_session_del(s->client);
	nghttp2_session_del(s->server);
	free(s);
	y->h2 = NULL;
}

static bool h2_covered(struct carry *y)
{
	struct h2_stream *st;

	TAILQ_FOREACH(st, &y->h2->streams, entry)
	if (st->began && !st->own && !exchange_covered(y, &st->x))
		(void)!h2_fail(st, NGHTTP2_CANCEL);
	(void)!send_out(y->client, y->h2->client);
	conn_flush(y->client);
	return true;
}

/* In the middle of a head nothing else can be said or heard on the connection. */
static void late(struct carry *y)
{
	struct h2_stream *st;

	TAILQ_FOREACH(st, &y->h2->streams, entry)
	{
		if (st->began)
			continue;
		st->x.verdict =
			(struct verdict){.status = 408, .outcome = EGRESS_BLOCKED, .rule = -1};
		EVENT_TEXT(st->x.verdict.detail, CARRY_LATE);
	}
	carry_end(y, EGRESS_BLOCKED, CARRY_LATE);
}

static const struct speaker speaker = {
	.pump = pump, .free = h2_free, .covered = h2_covered, .late = late};

/* ---------------------------------------------------------------- the beginning */

static int client_session(struct carry *y, nghttp2_option *option)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_CLIENT_STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEAD_MAX_BYTES},
	};
	nghttp2_session_callbacks *cb;
	int r;

	if (nghttp2_session_callbacks_new(&cb))
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_client_begin);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_client_field);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_client_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_client_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_client_close);
	r = nghttp2_session_server_new2(&y->h2->client, cb, y, option);
	nghttp2_session_callbacks_del(cb);
	if (r)
		return -ENOMEM;
	if (nghttp2_submit_settings(y->h2->client, NGHTTP2_FLAG_NONE, settings,
				    ARRAY_SIZE(settings)) ||
	    nghttp2_session_set_local_window_size(y->h2->client, NGHTTP2_FLAG_NONE, 0,
						  H2_CLIENT_WINDOW))
		return -ENOMEM;
	return 0;
}

static int server_session(struct carry *y, nghttp2_option *option)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_SERVER_STREAM_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEAD_MAX_BYTES},
	};
	nghttp2_session_callbacks *cb;
	int r;

	if (nghttp2_session_callbacks_new(&cb))
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_header_callback(cb, on_server_field);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_server_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_server_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_server_close);
	nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_server_unsent);
	r = nghttp2_session_client_new2(&y->h2->server, cb, y, option);
	nghttp2_session_callbacks_del(cb);
	if (r)
		return -ENOMEM;
	if (nghttp2_submit_settings(y->h2->server, NGHTTP2_FLAG_NONE, settings,
				    ARRAY_SIZE(settings)) ||
	    nghttp2_session_set_local_window_size(y->h2->server, NGHTTP2_FLAG_NONE, 0,
						  H2_SERVER_WINDOW))
		return -ENOMEM;
	return 0;
}

int h2_start(struct carry *y)
{
	nghttp2_option *option;
	int r;

	y->h2 = calloc(1, sizeof(*y->h2));
	if (!y->h2)
		return -ENOMEM;
	TAILQ_INIT(&y->h2->streams);
	if (nghttp2_option_new(&option)) {
		h2_free(y);
		return -ENOMEM;
	}
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_max_outbound_ack(option, 200);
	nghttp2_option_set_stream_reset_rate_limit(option, 200, 20);
	nghttp2_option_set_peer_max_concurrent_streams(option, H2_STREAMS);
	r = client_session(y, option);
	if (r == 0 && y->server)
		r = server_session(y, option);
	nghttp2_option_del(option);
	if (r < 0) {
		h2_free(y);
		return r;
	}
	y->speaker = &speaker;
	return 0;
}
