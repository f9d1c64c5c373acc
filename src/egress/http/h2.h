/* What h2.c keeps for each flow that speaks HTTP/2. */
#pragma once

#include <sys/queue.h>
#include <nghttp2/nghttp2.h>

#include "egress/http/engine.h"

#define H2_STREAMS		100
#define H2_HEADS		(1u << 20) /* of all requests that are open */
#define H2_INTERIM_MAX		16	   /* 1xx answers to one request */
#define H2_QUEUE_MAX		1000 /* frames that wait: then no more is read that makes some */
/* How much of bodies may wait here: for one stream, and for all streams of the connection. The
 * server is far away, the client is not. */
#define H2_CLIENT_STREAM_WINDOW (256 << 10)
#define H2_CLIENT_WINDOW	(1 << 20)
#define H2_SERVER_STREAM_WINDOW (1 << 20)
#define H2_SERVER_WINDOW	(2 << 20)

/* A body on its way, with its trailers. */
struct h2_way {
	struct evbuffer *body;
	struct head trailers;
	bool end, sent_end;
	size_t taken; /* has left, but is not confirmed to the sender yet */
};

struct h2_stream {
	TAILQ_ENTRY(h2_stream) entry;
	struct carry *y;
	int32_t client_id, server_id; /* server_id: -1: none yet, 0: no more */
	struct exchange x;
	struct head answer;
	struct h2_way up, down;
	struct mask mask;
	unsigned interim; /* answers before the one that counts */
	size_t head_bytes;
	bool dropped;	/* the server's part: nothing of it counts any more */
	bool began;	/* the request's head is complete */
	bool answered;	/* an answer's head has gone to the client */
	bool own;	/* it is ours */
	bool discard;	/* the request's body goes nowhere */
	bool too_large; /* the request's head is */
};

struct h2 {
	nghttp2_session *client, *server; /* server: NULL if there is none */
	TAILQ_HEAD(h2_streams, h2_stream) streams;
	size_t nstreams, head_bytes;
	bool going, told_going; /* GOAWAY */
	bool broken;		/* the client's session can't go on */
};

/* h2_stream.c. What returns bool: false is out of memory, and the session can't go on. */
struct h2_stream *h2_stream_new(struct carry *y, int32_t id);
/* Tells the request's event. */
void h2_stream_free(struct h2_stream *st);
/* Answers x.verdict, or resets the stream where an answer has begun. */
bool h2_answer_verdict(struct h2_stream *st);
bool h2_verdict(struct h2_stream *st, int status, enum egress_outcome outcome, const char *detail);
/* Resets the stream, both sides. */
bool h2_fail(struct h2_stream *st, uint32_t code);
/* The server's half is not needed any more; it is reset with code, if it is open still. */
void h2_drop_server(struct h2_stream *st, uint32_t code);
/* Heads and ends, when they are complete. */
bool h2_got_request(struct h2_stream *st, bool end);
bool h2_got_trailers(struct h2_stream *st);
bool h2_got_answer(struct h2_stream *st, bool end);
void h2_up_ended(struct h2_stream *st);
bool h2_down_ended(struct h2_stream *st);
/* Tells the senders what has left. Was there anything? */
bool h2_confirm(struct h2 *s);
