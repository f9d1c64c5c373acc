/* One request: is it for the host that the connection stands for, do the rules allow it, and what
 * of secrets is in it.
 *
 * Process: the broker, confined. Hostile: the request and the answer. Everything that h1.c and h2.c
 * let through goes through here once, and goes on as it was changed here. */
#include "egress/http/engine.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"

void exchange_begin(struct exchange *x)
{
	exchange_done(x);
	x->started_us = clock_mono_us();
}

void exchange_done(struct exchange *x)
{
	head_done(&x->request);
	x->asked[0] = x->accept[0] = x->host[0] = '\0';
	x->family = 0;
	x->port = 0;
	x->verdict = (struct verdict){.rule = -1};
	x->status = 0;
	x->started_us = x->out = x->in = 0;
	x->sent_state = 0;
	x->sent_form = (struct secrets_form){.nheld = 0};
	x->is_form = false;
	x->secret_host = x->told = false;
}

static void refuse(struct exchange *x, int status, enum egress_outcome outcome, const char *detail)
{
	x->verdict.status = status;
	x->verdict.outcome = outcome;
	EVENT_TEXT(x->verdict.detail, detail);
}

static void block(struct exchange *x, int status, const char *detail)
{
	refuse(x, status, EGRESS_BLOCKED, detail);
}

/* host, host:port, [v6] or [v6]:port; no user. The port stays what it is if there is none. */
static bool parse_authority(const char *s, size_t len, struct exchange *x)
{
	char host[NETWORK_HOST_MAX + 2];
	const char *colon;
	uint64_t port;
	bool bracket = len && s[0] == '[';

	if (bracket) {
		const char *end = memchr(s, ']', len);

		if (!end)
			return false;
		colon = end + 1 < s + len ? end + 1 : NULL;
		if (colon && *colon != ':')
			return false;
		snprintf(host, sizeof(host), "%.*s", (int)(end - s - 1), s + 1);
	} else {
		size_t n;

		colon = memchr(s, ':', len);
		n = colon ? (size_t)(colon - s) : len;
		if (n >= sizeof(host))
			return false;
		memcpy(host, s, n);
		host[n] = '\0';
		if (strlen(host) != n)
			return false;
	}
	if (colon) {
		char digits[8];
		size_t n = (size_t)(s + len - colon - 1);

		if (n == 0 || n >= sizeof(digits))
			return false;
		memcpy(digits, colon + 1, n);
		digits[n] = '\0';
		if (num_parse_u64(digits, 65535, &port) < 0 || port == 0)
			return false;
		x->port = (uint16_t)port;
	}
	x->family = 0;
	if (inet_pton(bracket ? AF_INET6 : AF_INET, host, &x->address) == 1) {
		x->family = bracket ? AF_INET6 : AF_INET;
		inet_ntop(x->family, &x->address, x->host, sizeof(x->host));
		return true;
	}
	return !bracket && network_host_normalise(host, strlen(host), x->host) == 0;
}

/* scheme://authority/path: sets the authority and leaves the path. false: it is none. */
static bool split_absolute(struct head *h, const char **ret_scheme)
{
	const char *t = head_text(h, h->target), *authority, *path;
	char path_copy[2] = "/";
	uint32_t at;

	if (strncasecmp(t, "http://", 7) == 0) {
		*ret_scheme = "http";
		authority = t + 7;
	} else if (strncasecmp(t, "https://", 8) == 0) {
		*ret_scheme = "https";
		authority = t + 8;
	} else {
		return false;
	}
	path = authority + strcspn(authority, "/?");
	/* Offsets, not copies: both stay within the text. The authority needs an end of its own. */
	if (head_store(h, authority, (size_t)(path - authority), &at) < 0)
		return false;
	t = head_text(h, h->target); /* the text may have moved */
	path = t + strlen(*ret_scheme) + 3;
	path += strcspn(path, "/?");
	h->authority = at;
	if (*path == '?') /* a query without a path: programs do not send it */
		return false;
	if (*path == '/') {
		h->target = (uint32_t)(path - h->text.data);
		return true;
	}
	if (head_store(h, path_copy, 1, &at) < 0)
		return false;
	h->target = at;
	return true;
}

/* Whom is the request for? Sets host and port, from one place only: what says it twice must say the
 * same. */
static bool find_host(struct carry *y, struct exchange *x)
{
	struct head *h = &x->request;
	const char *target = head_text(h, h->target), *scheme = NULL, *host, *authority;
	size_t nhosts;

	x->port = y->f->door == FLOW_FORWARD ? 80 : y->f->port;
	if (target[0] != '/' &&
	    !(strcmp(target, "*") == 0 && strcmp(head_text(h, h->method), "OPTIONS") == 0)) {
		if (!split_absolute(h, &scheme)) {
			block(x, 400, "a target that is neither a path nor a URL");
			return false;
		}
	}
	if (y->f->door == FLOW_FORWARD && !scheme) {
		block(x, 400, "this is a proxy: the target must be a whole URL");
		return false;
	}
	if (scheme && strcmp(scheme, y->tls ? "https" : "http") != 0) {
		block(x, 400,
		      y->f->door == FLOW_FORWARD ? "https through this proxy needs CONNECT"
						 : "the URL's scheme is not the connection's");
		return false;
	}
	host = head_get(h, "host", &nhosts);
	authority = head_text(h, h->authority);
	if (nhosts > 1 || (host && authority && strcasecmp(host, authority) != 0)) {
		block(x, 400, "Host and the target name different hosts");
		return false;
	}
	if (!host && !authority) { /* HTTP/1.0 */
		snprintf(x->host, sizeof(x->host), "%s", y->name);
		x->family = y->name_is_address ? y->f->family : 0;
		x->address = y->f->address;
		return true;
	}
	authority = authority ? authority : host;
	if (!parse_authority(authority, strlen(authority), x)) {
		block(x, 400, "Host is not a host name");
		return false;
	}
	return true;
}

static bool is_flows(const struct carry *y, const struct exchange *x)
{
	if (y->f->door == FLOW_FORWARD)
		return true;
	if (x->port != y->f->port)
		return false;
	if (!y->name_is_address)
		return !x->family && strcmp(x->host, y->name) == 0;
	return x->family == y->f->family &&
	       memcmp(&x->address, &y->f->address, x->family == AF_INET ? 4 : 16) == 0;
}

static struct network_answer ask(struct carry *y, const struct exchange *x, const char *method,
				 const char *path)
{
	struct network_question q = {
		.host = x->family ? NULL : x->host,
		.family = x->family,
		.address = x->family ? &x->address : NULL,
		.port = x->port,
		.protocol = y->tls ? NETWORK_TLS : NETWORK_HTTP,
		.method = method,
		.path = path,
	};

	return network_ask(y->f->e->config->network, &q);
}

/* Rules name methods in upper case, and some servers take any. */
static void upper(char *to, size_t size, const char *method)
{
	size_t i;

	for (i = 0; method[i] && i + 1 < size; i++)
		to[i] = (char)toupper((unsigned char)method[i]);
	to[i] = '\0';
}

/* The path as rules see it; false: servers could read it in different ways. */
static bool plain_path(struct carry *y, const struct exchange *x, char *to, size_t size,
		       const char **ret_why)
{
	const char *target = head_text(&x->request, x->request.target);
	size_t len = strcspn(target, "?");
	int r;

	*ret_why = "it is too long";
	if (!x->family && !network_has_paths(y->f->e->config->network, x->host)) {
		snprintf(to, size, "%.*s", (int)len, target);
		return true;
	}
	r = network_path_normalise(target, len, to, size, ret_why);
	return r == 0;
}

/* Fields with which servers let a POST be something else; a rule that names methods means what is
 * done, not what is written. */
static const char *const overrides[] = {"x-http-method-override", "x-http-method",
					"x-method-override"};

static bool check_rules(struct carry *y, struct exchange *x)
{
	char path[NETWORK_PATH_MAX], method[40], detail[160];
	const char *why;
	struct network_answer a;
	unsigned n = 0;

	upper(method, sizeof(method), head_text(&x->request, x->request.method));
	/* "get": a server may take it for GET, or for anything. */
	if (strcmp(method, head_text(&x->request, x->request.method)) != 0) {
		block(x, 400, "the method is too long or not in capital letters");
		return false;
	}
	if (!plain_path(y, x, path, sizeof(path), &why)) {
		snprintf(detail, sizeof(detail), "the path can be read in two ways: %.100s", why);
		block(x, 400, detail);
		return false;
	}
	a = ask(y, x, method, path);
	x->verdict.rule = a.rule;
	if (!a.allowed) {
		block(x, 403, "");
		return false;
	}
	for (size_t i = 0; i < x->request.nfields; i++)
		for (size_t k = 0; k < ARRAY_SIZE(overrides); k++) {
			if (!head_is(&x->request, i, overrides[k]))
				continue;
			/* Each is a look at all rules, which is not for nothing. */
			if (++n > 4) {
				block(x, 400, "too many headers that ask for another method");
				return false;
			}
			upper(method, sizeof(method), head_value(&x->request, i));
			a = ask(y, x, method, path);
			if (a.allowed)
				continue;
			x->verdict.rule = a.rule;
			block(x, 403,
			      "a header asks for another method, which the rules do not allow");
			return false;
		}
	return true;
}

/* A value goes out in clear only where the rules leave no other way. */
static bool may_put(struct carry *y, const struct exchange *x)
{
	struct network_question q = {.host = x->host, .protocol = NETWORK_TLS};

	return y->tls || (!x->family && !network_ask(y->f->e->config->network, &q).allowed);
}

static bool check_secrets(struct carry *y, struct exchange *x)
{
	char detail[160];
	bool put = may_put(y, x);
	int r = secrets_put(y->h->secrets, x->host, put, &x->request, detail);

	if (r == -EPERM) {
		if (!put && secrets_belong(y->h->secrets, x->host))
			snprintf(detail, sizeof(detail),
				 "a secret's placeholder in clear HTTP, where TLS is allowed too");
		refuse(x, 403, EGRESS_EXFILTRATION, detail);
	} else if (r == -E2BIG) {
		block(x, 431, "too large with the secret's value in it");
	} else if (r < 0) {
		refuse(x, 503, EGRESS_UNREACHABLE, "out of memory");
	}
	return r == 0;
}

/* Answers of a host that knows a secret must be readable here, so that it can be masked. */
static bool ask_for_identity(struct head *h)
{
	static const char *const extensions =
		"sec-websocket-extensions"; /* compression, all of them */

	head_remove(h, "accept-encoding");
	head_remove(h, extensions);
	return head_add(h, "accept-encoding", 15, "identity", 8) == 0;
}

static bool is_form(const struct head *h)
{
	static const char type[] = "application/x-www-form-urlencoded";
	const char *v = head_get(h, "content-type", NULL);

	return v && strncasecmp(v, type, sizeof(type) - 1) == 0;
}

void exchange_check(struct carry *y, struct exchange *x)
{
	struct head *h = &x->request;
	const char *accept = head_get(h, "accept", NULL);

	EVENT_TEXT(x->asked, head_text(h, h->target));
	EVENT_TEXT(x->accept, accept ? accept : "");
	if (strcasecmp(head_text(h, h->method), "CONNECT") == 0) {
		block(x, 403, "CONNECT within a connection");
		return;
	}
	if (!find_host(y, x))
		return;
	EVENT_TEXT(x->asked, head_text(h, h->target)); /* as a path, if it was a URL */
	if (!is_flows(y, x)) {
		block(x, 421, "Host is not the host that the connection was made to");
		return;
	}
	if (!check_rules(y, x))
		return;
	y->f->rule = x->verdict.rule;
	/* A cap that is reached already is told in words; one that is reached within a body ends
	 * the connection. */
	if (flow_account(y->f, 0, 0) < 0) {
		block(x, 403, flow_quota_detail(y->f));
		return;
	}
	if (!check_secrets(y, x))
		return;
	x->is_form = is_form(h);
	head_drop_hops(h);
	x->secret_host = secrets_belong(y->h->secrets, x->host);
	if (x->secret_host && !ask_for_identity(h))
		block(x, 431, "too many headers");
}

bool exchange_check_body(struct carry *y, struct exchange *x, const void *data, size_t len)
{
	char detail[160];

	x->out += len;
	if (secrets_sent(y->h->secrets, &x->sent_state, data, len))
		secrets_tell(y->h->secrets, x->sent_state, "the body", detail);
	else if (x->is_form && secrets_sent_form(y->h->secrets, &x->sent_form, data, len))
		secrets_tell(y->h->secrets, x->sent_form.state, "the body, encoded", detail);
	else
		return true;
	refuse(x, 403, EGRESS_EXFILTRATION, detail);
	return false;
}

bool exchange_covered(struct carry *y, const struct exchange *x)
{
	char path[NETWORK_PATH_MAX], method[40];
	const char *why;

	if (!x->request.method || x->verdict.status)
		return true;
	upper(method, sizeof(method), head_text(&x->request, x->request.method));
	return plain_path(y, x, path, sizeof(path), &why) && ask(y, x, method, path).allowed;
}

void exchange_check_answer(struct carry *y, struct exchange *x, struct head *answer)
{
	char detail[160], coding[48];
	const char *v = head_get(answer, "content-encoding", NULL);

	/* HTTP/3 can't be checked, so it is not had; without the offer nobody tries. */
	head_remove(answer, "alt-svc");
	if (!x->secret_host)
		return;
	if (v && *v && strcasecmp(v, "identity") != 0 && answer->status >= 200) {
		snprintf(detail, sizeof(detail),
			 "the answer is encoded (%s) although identity was asked for, so a secret "
			 "in "
			 "it could not be masked",
			 str_escape_into(coding, sizeof(coding), v, strlen(v)));
		refuse(x, 502, EGRESS_BLOCKED, detail);
		return;
	}
	secrets_mask_head(y->h->secrets, answer);
}

void exchange_tell(struct carry *y, struct exchange *x)
{
	struct egress_event ev = {.what = EGRESS_REQUEST, .count = 1};
	const char *method = head_text(&x->request, x->request.method);
	const char *whom = x->host[0] ? x->host : y->name;

	if (x->told)
		return;
	x->told = y->told = true;
	ev.outcome = x->verdict.status ? x->verdict.outcome : EGRESS_ALLOWED;
	ev.rule = x->verdict.rule;
	ev.port = x->port ? x->port : y->f->port;
	ev.source_port = y->f->source_port;
	ev.client = y->f->client_inode;
	ev.family = y->f->source_family;
	ev.protocol = y->tls ? NETWORK_TLS : NETWORK_HTTP;
	ev.status = (uint16_t)x->status;
	ev.bytes_out = x->out;
	ev.bytes_in = x->in;
	ev.duration_us = x->started_us ? clock_mono_us() - x->started_us : 0;
	/* What a proxy's client asks for may be nobody. */
	if (!x->host[0] && y->f->door == FLOW_FORWARD)
		whom = "";
	if (x->host[0] ? x->family : y->name_is_address)
		EVENT_TEXT(ev.address, whom);
	else
		EVENT_TEXT(ev.host, whom);
	ev.cut = y->f->e->cutting && ev.outcome == EGRESS_ALLOWED;
	ev.unfit = y->server_failed && ev.outcome == EGRESS_BLOCKED && x->verdict.status == 502 &&
		   y->f->unfit[0];
	if (!x->verdict.status || ev.unfit)
		EVENT_TEXT(ev.address, ev.unfit ? y->f->unfit : y->f->dialled);
	EVENT_TEXT(ev.sni, y->f->sni);
	EVENT_TEXT(ev.method, method ? method : "");
	EVENT_TEXT(ev.path, x->asked);
	EVENT_TEXT(ev.detail, x->verdict.detail);
	event_tell(y->f->e, &ev);
}
