/* What the engine answers itself: refusals (src/egress/refuse.h has the words), and why a server
 * could not be asked.
 *
 * Process: the broker, confined. What is told of the request is escaped by those who write it. */
#include "egress/http/engine.h"

#include <string.h>
#include <jansson.h>

#include "base/str.h"
#include "egress/refuse.h"

#define BODY_MAX (16u << 10)

static const char *reason(int status)
{
	switch (status) {
	case 400: return "Bad Request";
	case 403: return "Forbidden";
	case 408: return "Request Timeout";
	case 421: return "Misdirected Request";
	case 431: return "Request Header Fields Too Large";
	case 501: return "Not Implemented";
	case 502: return "Bad Gateway";
	case 503: return "Service Unavailable";
	case 505: return "HTTP Version Not Supported";
	default: return "Refused";
	}
}

/* Not policy: the server can't be reached, or what it says can't be passed on. */
static int write_failure(struct buf *b, const struct carry *y, const struct exchange *x, bool json)
{
	const char *host = x->host[0] ? x->host : y->name;
	unsigned port = x->port ? x->port : y->f->port;
	char detail[400];

	str_escape_into(detail, sizeof(detail), x->verdict.detail, strlen(x->verdict.detail));
	if (json) {
		json_t *j = json_pack("{s:s, s:s, s:s, s:i, s:s}", "error",
				      "no usable answer from the server", "source", "pale", "host",
				      host, "port", (int)port, "detail", detail);
		_cleanup_free_ char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;

		json_decref(j);
		return text ? buf_addf(b, "%s\n", text) : -ENOMEM;
	}
	return buf_addf(
		b,
		"Pale: no usable answer from %s port %u: %s.\n"
		"The policy allows this request; the fault is the server's or the network's.\n",
		host, port, detail);
}

/* Not the rules either, but how it was asked. */
static int write_fault(struct buf *b, const struct carry *y, const struct exchange *x, bool json)
{
	const char *host = x->host[0] ? x->host : y->name;
	char detail[400];

	str_escape_into(detail, sizeof(detail), x->verdict.detail, strlen(x->verdict.detail));
	if (json) {
		json_t *j = json_pack("{s:s, s:s, s:b, s:s, s:s}", "error", "refused_request",
				      "source", "pale", "final", 1, "host", host, "detail", detail);
		_cleanup_free_ char *text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;

		json_decref(j);
		return text ? buf_addf(b, "%s\n", text) : -ENOMEM;
	}
	return buf_addf(b,
			"Pale refused this request to %s: %s.\n"
			"The same request will be refused again.\n",
			host, detail);
}

int answer_make(struct carry *y, const struct exchange *x, struct answer *a)
{
	const struct verdict *v = &x->verdict;
	bool json = refuse_wants_json(x->accept[0] ? x->accept : NULL);
	struct refusal r = {
		.host = x->host[0] ? x->host : y->name,
		.port = x->port ? x->port : y->f->port,
		.protocol = y->tls ? NETWORK_TLS : NETWORK_HTTP,
		.method = head_text(&x->request, x->request.method),
		.path = x->asked[0] ? x->asked : NULL,
		.rule = v->rule,
		.detail = v->detail[0] ? v->detail : NULL,
	};
	int e;

	*a = (struct answer){.status = v->status, .reason = reason(v->status)};
	a->body = BUF_INIT(BODY_MAX);
	a->type = json ? "application/json" : "text/plain; charset=utf-8";
	a->policy = v->outcome != EGRESS_UNREACHABLE;
	if (!a->policy)
		e = write_failure(&a->body, y, x, json);
	else if (v->status != 403)
		e = write_fault(&a->body, y, x, json);
	else if (json)
		e = refuse_json(&a->body, y->f->e->config->network, &r);
	else
		e = refuse_text(&a->body, y->f->e->config->network, &r);
	return e < 0 ? -ENOMEM : 0;
}

void answer_done(struct answer *a)
{
	buf_done(&a->body);
}
