/* From a door to a carrier: see inspect.h.
 *
 * Runs in the broker. Hostile: the first bytes of the client, and how slowly they come. They are
 * peeked at, never read, so that whoever carries the flow finds all of them; the peek is into one
 * buffer of fixed size, and there is one deadline for all of it, however many bytes come meanwhile.
 */
#include "egress/inspect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "egress/http/http.h"
#include "egress/linger.h"
#include "egress/refuse.h"
#include "egress/relay.h"
#include "egress/tls_hello.h"

#define FIRST_MS   5000 /* until the first bytes make sense, where they decide */
#define RAW_MS	   300	/* the same where raw TCP is allowed too: the server may speak first */
#define REFUSED_MS 40	/* for a refusal in words; then a reset */
#define HEAD_MAX   HELLO_MAX

struct inspection {
	struct flow *f;
	struct event *readable, *deadline;
	struct network_answer tcp, tls, http;
	bool intercepts;
	int rule; /* that refuses, if nothing is allowed */
	unsigned changes;
};

static void done(struct inspection *i)
{
	if (i->readable)
		event_free(i->readable);
	if (i->deadline)
		event_free(i->deadline);
	i->f->carrier = NULL;
	i->f->carried = NULL;
	free(i);
}

static void drop(struct flow *f)
{
	done(f->carried);
}

/* Asked again when the first bytes are there. */
static bool covered(struct flow *f)
{
	struct inspection *i = f->carried;
	bool before = i->tcp.allowed || i->tls.allowed || i->http.allowed;

	i->tcp = flow_ask(f, NETWORK_TCP);
	i->tls = flow_ask(f, NETWORK_TLS);
	i->http = flow_ask(f, NETWORK_HTTP);
	i->intercepts = f->host[0] && network_intercepts(f->e->config->network, f->host, f->port);
	f->rule = -1;
	/* A proxy's client has somebody there already, whom the rules then in force let be dialled.
	 * Nothing has been said to it. */
	if (i->changes != f->e->changes) {
		close_fd(&f->upstream);
		f->dialled[0] = '\0';
	}
	i->changes = f->e->changes;
	i->rule = i->tls.rule >= 0 ? i->tls.rule : i->http.rule >= 0 ? i->http.rule : i->tcp.rule;
	return !before || i->tcp.allowed || i->tls.allowed || i->http.allowed;
}

static const struct flow_carrier inspecting = {.drop = drop, .covered = covered};

/* ---------------------------------------------------------------- refusals */

static void put32(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

/* RFC 4253: the identification, then one unencrypted packet, SSH_MSG_DISCONNECT with a text. */
static int add_ssh(struct buf *b, const struct policy_network *n, const struct refusal *r)
{
	char line[600];
	uint8_t packet[5 + 1 + 4 + 4 + sizeof(line) + 4 + 16] = {0};
	size_t len, payload, padding;

	refuse_line(line, sizeof(line), n, r);
	len = strlen(line);
	payload = 1 + 4 + 4 + len + 4;
	padding = 8 - (5 + payload) % 8;
	if (padding < 4)
		padding += 8;
	put32(packet, 1 + payload + padding);
	packet[4] = (uint8_t)padding;
	packet[5] = 1;	       /* SSH_MSG_DISCONNECT */
	put32(packet + 6, 11); /* SSH_DISCONNECT_BY_APPLICATION */
	put32(packet + 10, len);
	memcpy(packet + 14, line, len); /* then an empty language tag, and zeros as padding */
	buf_adds(b, "SSH-2.0-pale\r\n");
	return buf_add(b, packet, 4 + 1 + payload + padding);
}

void inspect_refuse(struct flow *f, enum inspect_voice voice, int rule, const char *detail,
		    const char *accept)
{
	/* TLS 1.2 on the record, as every version understands: alert, fatal, access_denied. */
	static const uint8_t alert[] = {21, 3, 3, 0, 2, 2, 49};
	_cleanup_buf_ struct buf b = BUF_INIT(16384);
	char address[INET6_ADDRSTRLEN] = "";
	struct refusal r = {
		.host = f->host,
		.port = f->port,
		.protocol = f->protocol,
		.method = f->method[0] ? f->method : NULL,
		.path = f->path[0] ? f->path : NULL,
		.rule = rule,
		.detail = detail,
		.unfit = f->unfit[0] ? f->unfit : NULL,
	};

	if (!f->host[0]) {
		inet_ntop(f->family, &f->address, address, sizeof(address));
		r.host = address;
	}
	switch (voice) {
	case VOICE_TLS: buf_add(&b, alert, sizeof(alert)); break;
	case VOICE_HTTP:
		(void)!refuse_http(&b, f->e->config->network, &r, accept,
				   strcmp(f->method, "HEAD") == 0);
		break;
	case VOICE_SSH: add_ssh(&b, f->e->config->network, &r); break;
	case VOICE_NONE: break;
	}
	if (b.len && !b.failed &&
	    send(f->client, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)b.len)
		linger_close(f->e, take_fd(&f->client));
	flow_refuse(f, rule, detail);
}

/* ---------------------------------------------------------------- the first bytes */

enum inspect_kind inspect_kind_of(const uint8_t *data, size_t len)
{
	if (len == 0)
		return KIND_MORE;
	if (data[0] == 22)
		return KIND_TLS;
	if (memcmp(data, "SSH-", len < 4 ? len : 4) == 0 && len >= 4)
		return KIND_SSH;
	/* A method and a blank. */
	for (size_t i = 0; i < len && i < 24; i++) {
		if (data[i] == ' ')
			return i ? KIND_HTTP : KIND_OTHER;
		/* "M-SEARCH" is one, too. */
		if ((data[i] < 'A' || data[i] > 'Z') && (data[i] != '-' || i == 0))
			return KIND_OTHER;
	}
	return len < 24 ? KIND_MORE : KIND_OTHER;
}

static void copy(char *to, size_t size, const char *from, size_t len)
{
	if (len >= size)
		len = size - 1;
	memcpy(to, from, len);
	to[len] = '\0';
}

bool inspect_head_parse(const char *data, size_t len, struct inspect_head *ret)
{
	const char *end = memmem(data, len, "\r\n\r\n", 4), *line, *blank;

	memset(ret, 0, sizeof(*ret));
	blank = memchr(data, ' ', len);
	if (blank) {
		const char *path = blank + 1, *stop;

		copy(ret->method, sizeof(ret->method), data, (size_t)(blank - data));
		stop = path;
		while (stop < data + len && *stop != ' ' && *stop != '\r' && *stop != '\n' &&
		       *stop != '?')
			stop++;
		copy(ret->path, sizeof(ret->path), path, (size_t)(stop - path));
	}
	for (line = data; (line = memmem(line, (size_t)(data + len - line), "\r\n", 2));) {
		static const char name[] = "accept:";
		const char *value, *stop;

		line += 2;
		if ((size_t)(data + len - line) < sizeof(name) - 1)
			break;
		if (strncasecmp(line, name, sizeof(name) - 1) != 0)
			continue;
		value = line + sizeof(name) - 1;
		stop = memchr(value, '\r', (size_t)(data + len - value));
		if (stop)
			copy(ret->accept, sizeof(ret->accept), value, (size_t)(stop - value));
		break;
	}
	return end;
}

/* One voice for what the client speaks; called when nothing else is left. */
static void refuse(struct inspection *i, enum inspect_kind kind, const uint8_t *data, size_t len,
		   int rule, const char *detail)
{
	struct flow *f = i->f;
	struct inspect_head head = {0};

	if (kind == KIND_HTTP) {
		(void)inspect_head_parse((const char *)data, len, &head);
		memcpy(f->method, head.method, sizeof(f->method));
		memcpy(f->path, head.path, sizeof(f->path));
	}
	done(i);
	inspect_refuse(f,
		       kind == KIND_HTTP  ? VOICE_HTTP
		       : kind == KIND_TLS ? VOICE_TLS
		       : kind == KIND_SSH ? VOICE_SSH
					  : VOICE_NONE,
		       rule, detail, head.accept);
}

static void relay(struct inspection *i, enum network_protocol protocol, int rule)
{
	struct flow *f = i->f;

	done(i);
	f->protocol = protocol;
	f->rule = rule;
	relay_start(f);
}

static void engine(struct inspection *i, enum network_protocol protocol, int rule)
{
	struct flow *f = i->f;

	done(i);
	close_fd(&f->upstream); /* the engine dials for each request */
	f->protocol = protocol;
	f->rule = rule;
	http_take(f);
}

static void on_tls(struct inspection *i, const uint8_t *data, size_t len)
{
	struct flow *f = i->f;
	const struct policy_network *n = f->e->config->network;
	struct hello h;
	enum hello_state state = hello_parse(data, len, &h);

	if (state == HELLO_MORE)
		return;
	f->protocol = NETWORK_TLS;
	memcpy(f->sni, h.name, sizeof(f->sni));
	/* A raw rule that lies beside an intercepting one: those bytes are nobody's hello. */
	if (state != HELLO_OK && i->tcp.allowed) {
		relay(i, NETWORK_TCP, i->tcp.rule);
		return;
	}
	if (state != HELLO_OK) {
		refuse(i, KIND_TLS, data, len, i->rule, "not a TLS hello that makes sense");
		return;
	}
	if (!i->tls.allowed && i->tcp.allowed) {
		relay(i, NETWORK_TCP, i->tcp.rule);
		return;
	}
	if (!i->tls.allowed) {
		refuse(i, KIND_TLS, data, len, i->tls.rule,
		       i->http.allowed ? "TLS, where the rule is for HTTP in clear" : NULL);
		return;
	}
	if (h.encrypted)
		refuse(i, KIND_TLS, data, len, -1,
		       "the TLS hello hides the server's name (ECH); only a tcp rule allows that");
	else if (h.name_broken)
		refuse(i, KIND_TLS, data, len, -1, "the SNI is not a host name");
	else if (f->host[0] && !h.name[0])
		refuse(i, KIND_TLS, data, len, -1, "no SNI in the TLS hello");
	else if (f->host[0] && strcmp(h.name, f->host) != 0)
		refuse(i, KIND_TLS, data, len, -1, "the SNI is not the name of the connection");
	else {
		/* At an address that a rule names by itself, the name is up to the client; but not
		 * one that is denied. */
		if (!f->host[0] && h.name[0]) {
			const struct network_question ask = {
				.host = h.name, .port = f->port, .protocol = NETWORK_TLS};
			struct network_answer said = network_ask(n, &ask);

			if (said.rule >= 0 && n->rules[said.rule].deny) {
				refuse(i, KIND_TLS, data, len, said.rule, "the SNI is denied");
				return;
			}
		}
		if (i->intercepts)
			engine(i, NETWORK_TLS, i->tls.rule);
		else
			relay(i, NETWORK_TLS, i->tls.rule);
	}
}

static void on_http(struct inspection *i, const uint8_t *data, size_t len)
{
	struct inspect_head head;

	i->f->protocol = NETWORK_HTTP;
	if (i->http.allowed)
		engine(i, NETWORK_HTTP, i->http.rule);
	else if (i->tcp.allowed)
		relay(i, NETWORK_TCP, i->tcp.rule);
	else if (inspect_head_parse((const char *)data, len, &head) || len >= HEAD_MAX)
		refuse(i, KIND_HTTP, data, len, i->http.rule,
		       i->tls.allowed ? "HTTP in clear, where the rule is for TLS" : NULL);
	/* else: the deadline refuses with what is there */
}

static uint8_t peeked[HELLO_MAX]; /* of whoever is being looked at */

static ssize_t peek(const struct flow *f)
{
	ssize_t n = recv(f->client, peeked, sizeof(peeked), MSG_PEEK | MSG_DONTWAIT);

	return n < 0 && errno != EAGAIN ? -errno : n < 0 ? -EAGAIN : n;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct inspection *i = arg;
	struct flow *f = i->f;
	ssize_t n = peek(f);

	(void)fd;
	(void)what;
	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		bool allowed = i->tcp.allowed || i->tls.allowed || i->http.allowed;
		int rule = i->rule;

		done(i);
		/* Connected, and gone again: as a port scan does. It is told, as it was tried. */
		if (allowed)
			flow_end(f, EGRESS_ALLOWED, "closed by the client before it sent anything");
		else
			flow_refuse(f, rule, NULL);
		return;
	}
	switch (inspect_kind_of(peeked, (size_t)n)) {
	case KIND_MORE: return;
	case KIND_TLS: on_tls(i, peeked, (size_t)n); return;
	case KIND_HTTP: on_http(i, peeked, (size_t)n); return;
	case KIND_SSH:
		f->protocol = NETWORK_TCP;
		if (!i->tcp.allowed) {
			refuse(i, KIND_SSH, peeked, (size_t)n, i->tcp.rule,
			       i->tls.allowed || i->http.allowed ? "SSH needs a tcp rule" : NULL);
			return;
		}
		relay(i, NETWORK_TCP, i->tcp.rule);
		return;
	case KIND_OTHER:
		if (i->tcp.allowed) {
			relay(i, NETWORK_TCP, i->tcp.rule);
			return;
		}
		f->protocol = NETWORK_TCP;
		refuse(i, KIND_OTHER, peeked, (size_t)n, i->tcp.rule,
		       i->tls.allowed || i->http.allowed ? "neither TLS nor HTTP; only a tcp rule "
							   "allows that"
							 : NULL);
		return;
	}
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct inspection *i = arg;
	ssize_t n = peek(i->f);
	size_t len = n > 0 ? (size_t)n : 0;

	(void)fd;
	(void)what;
	if (i->tcp.allowed)
		relay(i, NETWORK_TCP, i->tcp.rule);
	else if (!i->tls.allowed && !i->http.allowed)
		refuse(i, inspect_kind_of(peeked, len), peeked, len, i->rule, NULL);
	else
		refuse(i, inspect_kind_of(peeked, len), peeked, len, -1,
		       len ? "the client did not finish its first message in time"
			   : "the client sent nothing: where the server speaks first, only a tcp "
			     "rule will do");
}

void inspect_start(struct flow *f)
{
	struct inspection *i = calloc(1, sizeof(*i));
	unsigned wait_ms = FIRST_MS;

	if (!i) {
		flow_end(f, EGRESS_UNREACHABLE, "out of memory");
		return;
	}
	i->f = f;
	i->changes = f->e->changes;
	f->carrier = &inspecting;
	f->carried = i;
	(void)covered(f);
	if (i->tcp.allowed && !i->intercepts) {
		relay(i, NETWORK_TCP, i->tcp.rule);
		return;
	}
	if (i->tcp.allowed)
		wait_ms = RAW_MS;
	else if (!i->tls.allowed && !i->http.allowed)
		wait_ms = REFUSED_MS;

	struct timeval wait = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};

	/* Edge-triggered: what was peeked at is still there, and would wake us without end. */
	i->readable =
		event_new(f->e->base, f->client, EV_READ | EV_PERSIST | EV_ET, on_readable, i);
	i->deadline = evtimer_new(f->e->base, on_deadline, i);
	if (!i->readable || !i->deadline || event_add(i->readable, NULL) < 0 ||
	    event_add(i->deadline, &wait) < 0) {
		done(i);
		flow_end(f, EGRESS_UNREACHABLE, "out of memory");
	}
}
