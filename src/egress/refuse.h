/* What is said to a program that is refused: that it is policy and final, which rule, why, and the
 * remedy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "egress/egress.h"
#include "policy/network.h"

struct refusal {
	const char *host; /* or the address as text */
	uint16_t port;
	enum network_protocol protocol; /* 0: not known */
	const char *method, *path;	/* of a request; or NULL */
	int rule;			/* that decided; -1: none covers it */
	const char *detail;		/* "SNI is not the name"; or NULL */
	const char *unfit;		/* the address for which alone it is refused; or NULL */
};

/* Appends the bodies; the text ends with a newline. */
int refuse_json(struct buf *b, const struct policy_network *n,
		const struct refusal *r) _must_check_;
int refuse_text(struct buf *b, const struct policy_network *n,
		const struct refusal *r) _must_check_;
/* One line, for SSH's disconnect message, SOCKS logs and events. */
void refuse_line(char *out, size_t size, const struct policy_network *n, const struct refusal *r);
/* A whole HTTP/1.1 response, 403, `Connection: close`; accept: the request's Accept header's value
 * or NULL. JSON where it is asked for before text. head_only: without the body (HEAD). */
int refuse_http(struct buf *b, const struct policy_network *n, const struct refusal *r,
		const char *accept, bool head_only) _must_check_;
/* Is JSON what this Accept header asks for first? */
bool refuse_wants_json(const char *accept);
