/* What h1.c and h1_answer.c keep for each flow that speaks HTTP/1. */
#pragma once

#include <string.h>

#include "egress/http/engine.h"
#include "egress/http/h1_parse.h"
#include "egress/http/websocket.h"

enum asking { ASK_NONE, ASK_DIAL, ASK_BODY, ASK_DONE };
enum answering { ANSWER_NONE, ANSWER_HEAD, ANSWER_BODY, ANSWER_DONE };

struct h1 {
	struct exchange x;
	enum asking asking;
	enum answering answering;
	bool discard;	/* the request's body goes nowhere */
	bool own;	/* the answer is ours */
	bool close;	/* after this answer */
	bool reused;	/* the server has answered on this connection before */
	bool head_only; /* HEAD */
	bool expects;	/* Expect: 100-continue */
	bool websocket, relay;
	int client_minor;
	char server_host[NETWORK_HOST_MAX + 1]; /* whom y->server is, for FLOW_FORWARD */
	uint16_t server_port;

	struct h1_scan ask_scan, answer_scan;
	struct h1_framing ask_framing, answer_framing;
	uint64_t ask_left, answer_left, discarded;
	struct h1_chunks ask_chunks, answer_chunks;
	bool answer_chunked; /* as the client gets it */
	struct head answer;
	struct mask mask, relay_mask;
	struct websocket websocket_out;
	struct evbuffer *piece; /* of an answer's body, until it is framed */
};

static inline bool h1_put(struct evbuffer *b, const char *s)
{
	return evbuffer_add(b, s, strlen(s)) == 0;
}
bool h1_put_fields(struct evbuffer *b, const struct head *h);

/* Answers x.verdict, if no answer has begun; otherwise the client sees a broken one. */
void h1_answer_verdict(struct carry *y);
/* The same with a verdict that is made of these: there is no answer of the server's. */
void h1_no_answer(struct carry *y, enum egress_outcome outcome, const char *detail);
/* The client must not take what it has of an answer for all of it: the connection is reset. */
void h1_break(struct carry *y);

/* h1_answer.c: moves what came from the server. Was there anything? */
bool h1_pump_answer(struct carry *y);
/* After 101, both ways. May end the flow, as its last act. */
void h1_pump_relay(struct carry *y);
