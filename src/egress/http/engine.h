/* What the parts of the HTTP engine share: one flow as it is carried here. */
#pragma once

#include <event2/event.h>

#include "egress/flow.h"
#include "egress/http/ca.h"
#include "egress/http/conn.h"
#include "egress/http/head.h"
#include "egress/http/http.h"
#include "egress/http/secrets.h"
#include "egress/http/tls.h"

struct http {
	struct egress *e;
	struct ca *ca;		 /* NULL: nothing intercepts */
	struct tls *tls;	 /* likewise */
	struct secrets *secrets; /* NULL: there are none */
	uint64_t head_us;	 /* for the head of a request, from its first byte */
};

struct carry;

/* A version of HTTP, spoken with both sides. */
struct speaker {
	/* Something has changed: move what can be moved. May end the flow (carry_end()), as its
	 * last act. */
	void (*pump)(struct carry *y);
	void (*free)(struct carry *y);
	/* The head of a request was begun, and did not come in time. Likewise. */
	void (*late)(struct carry *y);
	/* Rules have changed. */
	bool (*covered)(struct carry *y);
};

/* Where the flow is. */
enum carry_state {
	CARRY_HELLO,  /* the client's TLS hello is awaited */
	CARRY_DIAL,   /* the server is dialled, before anything is said to the client */
	CARRY_SERVER, /* TLS handshake with the server */
	CARRY_CLIENT, /* TLS handshake with the client */
	CARRY_PEEK,   /* in clear: the first bytes tell the version */
	CARRY_SPEAK,
	CARRY_LINGER, /* all is said; what the client still sends is thrown away, so that the kernel
			 does not reset the connection under what it has not read yet */
};

struct carry {
	struct http *h;
	struct flow *f;
	enum carry_state state;
	bool tls;
	char name[NETWORK_HOST_MAX + 1]; /* the host, or the address as text */
	bool name_is_address;
	struct tls_hello hello;
	struct conn *client, *server; /* server: NULL until it is connected */
	struct dial *dial;
	struct event *timer, *head_timer;
	bool paused; /* for the rate */
	bool idle;   /* nothing of the client's is on its way: what moves is only HTTP/2's own */
	bool told;   /* a request's event */
	uint64_t accounted_out, accounted_in, linger_from;
	/* Why there is no server. */
	bool server_failed, refused;
	enum egress_outcome outcome; /* of the flow, so far */
	char detail[160];

	const struct speaker *speaker;
	struct h1 *h1;
	struct h2 *h2;
};

/* What one request is answered with, if not by the server. */
struct verdict {
	int status; /* 0: go on */
	enum egress_outcome outcome;
	int rule;
	char detail[160];
};

/* A request, as it is told in its event. */
struct exchange {
	struct head request;
	char asked[512];  /* the target as the client sent it: no value of a secret is in it yet */
	char accept[128]; /* for the form of a refusal */
	char host[NETWORK_HOST_MAX + 1]; /* normalised, or an address as text: */
	int family;			 /* of the address; 0: it is a name */
	struct in6_addr address;
	uint16_t port;
	struct verdict verdict;
	unsigned status; /* of the answer */
	uint64_t started_us, out, in;
	uint32_t sent_state; /* of the search for placeholders in the body */
	struct secrets_form sent_form;
	bool is_form;	  /* the body is one: both are looked at */
	bool secret_host; /* answers are masked */
	bool told;
};

void exchange_begin(struct exchange *x);
void exchange_done(struct exchange *x);
/* Looks at the request: host, path, rules, secrets; puts values in. x->verdict says what came of
 * it. The request is changed so that it can be sent: origin form, no fields for the next hop. */
void exchange_check(struct carry *y, struct exchange *x);
/* Is a placeholder in these bytes of the body? Then x->verdict is set. */
bool exchange_check_body(struct carry *y, struct exchange *x, const void *data, size_t len);
/* Do rules, as they are now, still allow it? */
bool exchange_covered(struct carry *y, const struct exchange *x);
/* What is to be done with an answer's head before the client gets it: masks; verdict 502 if it
 * can't be. */
void exchange_check_answer(struct carry *y, struct exchange *x, struct head *answer);
/* One EGRESS_REQUEST event. */
void exchange_tell(struct carry *y, struct exchange *x);

/* The body of an answer that the engine gives itself. */
struct answer {
	int status;
	bool policy; /* it is refused, not failed */
	const char *reason, *type;
	struct buf body;
};
int answer_make(struct carry *y, const struct exchange *x, struct answer *a) _must_check_;
void answer_done(struct answer *a);

/* Counts what was moved. false: a cap is reached and the flow has been ended. */
bool carry_account(struct carry *y);
/* Sends what is left, waits for the client to take it, ends. */
void carry_linger(struct carry *y);
void carry_end(struct carry *y, enum egress_outcome outcome, const char *detail);
/* Ends with what was noted. */
void carry_close(struct carry *y);
/* The outcome that is told in the end, if nothing worse comes. */
void carry_note(struct carry *y, enum egress_outcome outcome, const char *detail);
/* Dials host:port (for FLOW_FORWARD), or where the flow goes; y->speaker->pump() is called when
 * there is y->server or y->server_failed. */
void carry_dial(struct carry *y, const struct exchange *x);
void carry_drop_server(struct carry *y);
/* Is a part of a request's head there? From when it first was, y->speaker->late() is due. */
void carry_expect_head(struct carry *y, bool begun);
#define CARRY_LATE "the head of the request did not come in time"
/* Reads from both sides as far as there is room on the other. */
void carry_interest(struct carry *y, bool from_client, bool from_server);

int h1_start(struct carry *y) _must_check_;
int h2_start(struct carry *y) _must_check_;
