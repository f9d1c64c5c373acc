/* HTTP/2: streams in pairs, their bodies, and what becomes of each request.
 *
 * Process: the broker, confined. Hostile: both sides; see h2.c. */
#include "egress/http/h2.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---------------------------------------------------------------- streams */

struct h2_stream *h2_stream_new(struct carry *y, int32_t id)
{
	struct h2 *s = y->h2;
	struct h2_stream *st;

	if (s->nstreams >= H2_STREAMS)
		return NULL;
	st = calloc(1, sizeof(*st));
	if (!st)
		return NULL;
	st->y = y;
	st->client_id = id;
	st->server_id = -1;
	st->up.body = evbuffer_new();
	st->down.body = evbuffer_new();
	exchange_begin(&st->x);
	head_init(&st->answer);
	head_init(&st->up.trailers);
	head_init(&st->down.trailers);
	mask_init(&st->mask, NULL);
	TAILQ_INSERT_TAIL(&s->streams, st, entry);
	s->nstreams++;
	if (!st->up.body || !st->down.body) {
		h2_stream_free(st);
		return NULL;
	}
	return st;
}

void h2_stream_free(struct h2_stream *st)
{
	struct h2 *s = st->y->h2;

	s->head_bytes -= st->head_bytes;
	if (st->x.request.method)
		exchange_tell(st->y, &st->x);
	TAILQ_REMOVE(&s->streams, st, entry);
	s->nstreams--;
	exchange_done(&st->x);
	head_done(&st->answer);
	head_done(&st->up.trailers);
	head_done(&st->down.trailers);
	mask_done(&st->mask);
	if (st->up.body)
		evbuffer_free(st->up.body);
	if (st->down.body)
		evbuffer_free(st->down.body);
	free(st);
}

/* ---------------------------------------------------------------- from heads to nghttp2's lists */

struct fields {
	nghttp2_nv nv[HEAD_MAX_FIELDS + 4];
	size_t n;
};

/* What authenticates is not to be found out by guesses at a table's contents (RFC 7541, 7.1). */
static void unguessed(struct fields *f)
{
	f->nv[f->n - 1].flags = NGHTTP2_NV_FLAG_NO_INDEX;
}

static void field(struct fields *f, const char *name, size_t name_len, const char *value,
		  size_t value_len)
{
	/* nghttp2 copies, so the head may go. */
	f->nv[f->n++] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
				     .namelen = name_len,
				     .value = (uint8_t *)(uintptr_t)value,
				     .valuelen = value_len};
	if (name_len == 13 && memcmp(name, "authorization", 13) == 0)
		unguessed(f);
}

static void pseudo(struct fields *f, const char *name, const char *value)
{
	field(f, name, strlen(name), value, strlen(value));
}

static void fields_of(struct fields *f, const struct head *h)
{
	for (size_t i = 0; i < h->nfields; i++) {
		field(f, head_name(h, i), h->fields[i].name_len, head_value(h, i),
		      h->fields[i].value_len);
		if (h->fields[i].secret)
			unguessed(f);
	}
}

/* ---------------------------------------------------------------- bodies */

/* nghttp2 asks for more of a body: one function for both ways, since a way knows its sender. */
static ssize_t on_source(nghttp2_session *to, int32_t id, uint8_t *buf, size_t len, uint32_t *flags,
			 nghttp2_data_source *source, void *user)
{
	struct h2_way *w = source->ptr;
	size_t have = evbuffer_get_length(w->body);
	int n;

	(void)user;
	if (have == 0 && !w->end)
		return NGHTTP2_ERR_DEFERRED;
	n = evbuffer_remove(w->body, buf, len);
	if (n < 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	w->taken += (size_t)n;
	if (w->end && evbuffer_get_length(w->body) == 0) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		w->sent_end = true;
		if (w->trailers.nfields) {
			struct fields f = {.n = 0};

			fields_of(&f, &w->trailers);
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			if (nghttp2_submit_trailer(to, id, f.nv, f.n))
				return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		}
	}
	return n;
}

/* Tells the senders what has left; not from within on_source(), where their session may be busy.
 * Was there anything? */
bool h2_confirm(struct h2 *s)
{
	struct h2_stream *st;
	bool any = false;

	TAILQ_FOREACH(st, &s->streams, entry)
	{
		any = any || st->up.taken || st->down.taken;
		if (st->up.taken)
			nghttp2_session_consume(s->client, st->client_id, st->up.taken);
		if (st->down.taken && s->server && !st->dropped) {
			if (st->server_id > 0)
				nghttp2_session_consume(s->server, st->server_id, st->down.taken);
			else
				nghttp2_session_consume_connection(s->server, st->down.taken);
		}
		st->up.taken = st->down.taken = 0;
	}
	return any;
}

/* ---------------------------------------------------------------- answers of our own */

static bool submit_answer(struct h2_stream *st, bool body)
{
	struct h2 *s = st->y->h2;
	nghttp2_data_provider from = {.source.ptr = &st->down, .read_callback = on_source};
	struct fields f = {.n = 0};
	char status[16];

	snprintf(status, sizeof(status), "%u", st->answer.status);
	pseudo(&f, ":status", status);
	fields_of(&f, &st->answer);
	st->answered = true;
	return nghttp2_submit_response(s->client, st->client_id, f.nv, f.n, body ? &from : NULL) ==
	       0;
}

/* What of the request is still to come is confirmed and thrown away. */
static void discard_up(struct h2_stream *st)
{
	st->discard = true;
	st->up.taken += evbuffer_get_length(st->up.body);
	evbuffer_drain(st->up.body, evbuffer_get_length(st->up.body));
}

/* The pair of the stream is not needed any more; code: it is reset, if it is open still. */
void h2_drop_server(struct h2_stream *st, uint32_t code)
{
	struct h2 *s = st->y->h2;
	int32_t id = st->server_id;

	st->server_id = 0;
	if (!s->server || st->dropped)
		return;
	st->dropped = true;
	/* What waits of the answer will not be taken by anybody, and must not count for ever. */
	nghttp2_session_consume_connection(s->server, evbuffer_get_length(st->down.body) +
							      st->down.taken + st->mask.held.len);
	st->down.taken = 0;
	if (id <= 0)
		return;
	nghttp2_session_set_stream_user_data(s->server, id, NULL);
	nghttp2_submit_rst_stream(s->server, NGHTTP2_FLAG_NONE, id, code);
}

bool h2_answer_verdict(struct h2_stream *st)
{
	struct carry *y = st->y;
	char length[24];
	bool head = st->x.request.method &&
		    strcmp(head_text(&st->x.request, st->x.request.method), "HEAD") == 0;
	struct answer a;
	bool ok;

	h2_drop_server(st, NGHTTP2_CANCEL);
	discard_up(st);
	if (st->answered)
		return h2_fail(st, NGHTTP2_INTERNAL_ERROR);
	evbuffer_drain(st->down.body, evbuffer_get_length(st->down.body));
	st->x.status = (unsigned)st->x.verdict.status;
	head_done(&st->answer);
	ok = answer_make(y, &st->x, &a) == 0;
	st->answer.status = st->x.status;
	snprintf(length, sizeof(length), "%zu", a.body.len);
	ok = ok && head_add(&st->answer, "content-type", 12, a.type, strlen(a.type)) == 0 &&
	     head_add(&st->answer, "content-length", 14, length, strlen(length)) == 0 &&
	     head_add(&st->answer, "cache-control", 13, "no-store", 8) == 0 &&
	     (!a.policy || head_add(&st->answer, "x-pale-blocked", 14, "policy", 6) == 0) &&
	     (head || evbuffer_add(st->down.body, a.body.data, a.body.len) == 0);
	st->x.in = head ? 0 : a.body.len;
	answer_done(&a);
	st->down.end = true;
	st->own = true;
	return ok && submit_answer(st, !head);
}

bool h2_verdict(struct h2_stream *st, int status, enum egress_outcome outcome, const char *detail)
{
	st->x.verdict.status = status;
	st->x.verdict.outcome = outcome;
	event_text(st->x.verdict.detail, sizeof(st->x.verdict.detail), detail);
	return h2_answer_verdict(st);
}

bool h2_fail(struct h2_stream *st, uint32_t code)
{
	h2_drop_server(st, NGHTTP2_CANCEL);
	discard_up(st);
	return nghttp2_submit_rst_stream(st->y->h2->client, NGHTTP2_FLAG_NONE, st->client_id,
					 code) == 0;
}

/* ---------------------------------------------------------------- requests */

static bool submit_request(struct h2_stream *st, bool body)
{
	struct h2 *s = st->y->h2;
	struct head *h = &st->x.request;
	nghttp2_data_provider from = {.source.ptr = &st->up, .read_callback = on_source};
	const char *authority = head_text(h, h->authority);
	struct fields f = {.n = 0};

	pseudo(&f, ":method", head_text(h, h->method));
	pseudo(&f, ":scheme", st->y->tls ? "https" : "http");
	if (authority)
		pseudo(&f, ":authority", authority);
	pseudo(&f, ":path", head_text(h, h->target));
	if (h->target_secret)
		unguessed(&f);
	fields_of(&f, h);
	st->server_id = nghttp2_submit_request(s->server, NULL, f.nv, f.n, body ? &from : NULL, st);
	return st->server_id > 0;
}

bool h2_got_request(struct h2_stream *st, bool end)
{
	struct carry *y = st->y;
	struct h2 *s = y->h2;
	struct head *h = &st->x.request;
	const char *scheme = head_text(h, h->scheme);

	st->up.end = end;
	st->began = true;
	st->head_bytes = h->text.len;
	s->head_bytes += st->head_bytes;
	if (st->too_large || s->head_bytes > H2_HEADS)
		return h2_verdict(st, 431, EGRESS_BLOCKED, "too many or too large headers");
	if (!h->method || !h->target || !scheme)
		return h2_verdict(st, 400, EGRESS_BLOCKED, "no :method, :scheme or :path");
	if (strcasecmp(scheme, y->tls ? "https" : "http") != 0)
		return h2_verdict(st, 400, EGRESS_BLOCKED, "the scheme is not the connection's");
	exchange_check(y, &st->x);
	if (st->x.verdict.status)
		return h2_answer_verdict(st);
	if (h->authority)
		head_remove(h, "host"); /* the same, said twice */
	if (y->server_failed)
		return h2_verdict(st, 502, y->outcome, y->detail);
	/* Where the server takes no more, the client may ask again on another connection. */
	if (!s->server || s->going || !submit_request(st, !end))
		return h2_fail(st, NGHTTP2_REFUSED_STREAM);
	return true;
}

bool h2_got_trailers(struct h2_stream *st)
{
	struct carry *y = st->y;
	struct head *t = &st->up.trailers;
	char detail[160], where[160];

	head_drop_hops(t);
	head_remove(t, "host");
	head_remove(t, "content-length");
	head_remove(t, "authorization");
	if (secrets_put(y->h->secrets, st->x.host, false, t, detail) == 0)
		return true;
	snprintf(where, sizeof(where), "trailers: %.140s", detail);
	return h2_verdict(st, 403, EGRESS_EXFILTRATION, where);
}

void h2_up_ended(struct h2_stream *st)
{
	struct h2 *s = st->y->h2;

	st->up.end = true;
	if (s->server && st->server_id > 0)
		nghttp2_session_resume_data(s->server, st->server_id);
}

/* ---------------------------------------------------------------- answers of the server */

bool h2_got_answer(struct h2_stream *st, bool end)
{
	struct carry *y = st->y;
	struct h2 *s = y->h2;
	struct head *h = &st->answer;
	struct fields f = {.n = 0};
	char status[16];

	exchange_check_answer(y, &st->x, h);
	if (st->x.verdict.status)
		return h2_answer_verdict(st);
	if (h->status < 200) {
		/* Flow control does not count them. */
		if (++st->interim > H2_INTERIM_MAX) {
			EVENT_TEXT(st->x.verdict.detail, "too many interim answers");
			return h2_fail(st, NGHTTP2_INTERNAL_ERROR);
		}
		snprintf(status, sizeof(status), "%u", h->status);
		pseudo(&f, ":status", status);
		fields_of(&f, h);
		end = nghttp2_submit_headers(s->client, NGHTTP2_FLAG_NONE, st->client_id, NULL,
					     f.nv, f.n, NULL) == 0;
		head_done(h);
		return end;
	}
	st->x.status = h->status;
	mask_init(&st->mask, st->x.secret_host ? y->h->secrets : NULL);
	st->down.end = end;
	st->down.sent_end = end;
	return submit_answer(st, !end);
}

bool h2_down_ended(struct h2_stream *st)
{
	struct h2 *s = st->y->h2;

	if (st->own)
		return true;
	if (mask_end(&st->mask, st->down.body) < 0)
		return false;
	st->down.end = true;
	if (st->answered)
		nghttp2_session_resume_data(s->client, st->client_id);
	return true;
}
