/* The HTTP engine without the rest of the broker: connections to a port of loopback are flows to a
 * given host, and whatever is dialled is one address. For the tests of src/egress/http/, which play
 * client and server themselves; nothing of it is installed.
 *
 * usage: http_door POLICY TRUST PORT:tls|http|forward:HOST:HOSTPORT:TO ... [-- PLACEHOLDER VALUE
 * ...] TO is the port on loopback of the server that stands for HOST; 0: nobody is there. Prints
 * the CA's certificate, then "ready", then an event a line (JSON) and the memory in use when it
 * gets SIGUSR1. On a line of standard input with a policy's name the rules are read anew. */
#include <arpa/inet.h>
#include <jansson.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/num.h"
#include "egress/http/http.h"

struct door {
	struct egress *e;
	int fd;
	enum flow_door kind;
	enum network_protocol protocol;
	char host[NETWORK_HOST_MAX + 1];
	uint16_t port, host_port, to;
	struct event *ev;
};

static TAILQ_HEAD(, flow) flows = TAILQ_HEAD_INITIALIZER(flows);
static struct door doors[16];
static size_t ndoors, nflows;

static const char *outcome_text(uint32_t outcome)
{
	static const char *const texts[] = {"",	       "allowed",     "opened",
					    "blocked", "unreachable", "exfiltration"};

	return texts[outcome];
}

void event_text(char *to, size_t size, const char *text)
{
	size_t len = strnlen(text, size - 1);

	memcpy(to, text, len);
	to[len] = '\0';
}

void event_tell(struct egress *e, const struct egress_event *ev)
{
	json_t *j =
		json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:i}",
			  "what", ev->what == EGRESS_REQUEST ? "request" : "connection", "outcome",
			  outcome_text(ev->outcome), "rule", ev->rule, "status", ev->status, "host",
			  ev->host, "method", ev->method, "path", ev->path, "detail", ev->detail,
			  "sni", ev->sni, "in", (json_int_t)ev->bytes_in, "out",
			  (json_int_t)ev->bytes_out, "address", ev->address, "port", ev->port);

	(void)e;
	json_dumpf(j, stdout, JSON_COMPACT);
	printf("\n");
	fflush(stdout);
	json_decref(j);
}

struct flow *flow_new(struct egress *e, int client, enum flow_door door)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->e = e;
	f->client = client;
	f->door = door;
	f->rule = -1;
	f->started_us = clock_mono_us();
	TAILQ_INSERT_TAIL(&flows, f, entry);
	nflows++;
	return f;
}

void flow_end(struct flow *f, enum egress_outcome outcome, const char *detail)
{
	struct egress_event ev = {.what = EGRESS_CONNECTION,
				  .outcome = outcome,
				  .rule = f->rule,
				  .port = f->port,
				  .bytes_in = f->bytes_in,
				  .bytes_out = f->bytes_out};

	EVENT_TEXT(ev.host, f->host);
	EVENT_TEXT(ev.sni, f->sni);
	EVENT_TEXT(ev.address, f->dialled);
	EVENT_TEXT(ev.detail, detail ? detail : "");
	event_tell(f->e, &ev);
	TAILQ_REMOVE(&flows, f, entry);
	nflows--;
	close(f->client);
	free(f);
}

struct network_answer flow_ask(struct flow *f, enum network_protocol protocol)
{
	struct network_question q = {.host = f->host, .port = f->port, .protocol = protocol};

	return network_ask(f->e->config->network, &q);
}

bool flow_covered(struct flow *f)
{
	struct network_answer a = flow_ask(f, f->protocol);

	f->rule = a.rule;
	return a.allowed;
}

int flow_account(struct flow *f, uint64_t out, uint64_t in)
{
	const struct policy_network *n = f->e->config->network;

	f->bytes_out += out;
	f->bytes_in += in;
	return n->total_bytes && f->bytes_out + f->bytes_in > n->total_bytes ? -EDQUOT : 0;
}

const char *flow_quota_detail(const struct flow *f)
{
	(void)f;
	return "the cap on bytes is reached";
}

uint64_t flow_pause_us(const struct flow *f)
{
	(void)f;
	return 0;
}

struct dial {
	struct event *ev;
	dial_cb cb;
	void *arg;
	struct dial_result result;
};

static void on_dialled(evutil_socket_t fd, short what, void *arg)
{
	struct dial *d = arg;

	(void)fd;
	(void)what;
	d->cb(&d->result, d->arg);
	event_free(d->ev);
	free(d);
}

static struct dial *dial_port(struct egress *e, uint16_t port, dial_cb cb, void *arg)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval now = {0};
	struct dial *d = calloc(1, sizeof(*d));
	int one = 1;

	if (!d)
		return NULL;
	a.sin_port = htons(port);
	d->cb = cb;
	d->arg = arg;
	d->result.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	EVENT_TEXT(d->result.address, "127.0.0.1");
	if (connect(d->result.fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close_fd(&d->result.fd);
		d->result.outcome = EGRESS_UNREACHABLE;
		EVENT_TEXT(d->result.detail, "ECONNREFUSED");
	} else {
		fd_set_nonblock(d->result.fd, true);
		setsockopt(d->result.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
	d->ev = event_new(e->base, -1, 0, on_dialled, d);
	event_add(d->ev, &now);
	return d;
}

void dial_cancel(struct dial *d)
{
	if (!d)
		return;
	close_fd(&d->result.fd);
	event_free(d->ev);
	free(d);
}

struct dial *dial_start(struct egress *e, const struct dial_target *to, dial_cb cb, void *arg)
{
	uint16_t port = 0;

	for (size_t i = 0; i < ndoors; i++)
		if (to->host && strcmp(doors[i].host, to->host) == 0)
			port = doors[i].to;
	return dial_port(e, port, cb, arg);
}

/* The door that it came in by knows where to. */
struct dial *flow_dial(struct flow *f, dial_cb cb, void *arg)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	uint16_t port = 0;

	getsockname(f->client, (struct sockaddr *)&a, &len);
	for (size_t i = 0; i < ndoors; i++)
		if (doors[i].port == ntohs(a.sin_port))
			port = doors[i].to;
	return dial_port(f->e, port, cb, arg);
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct door *d = arg;
	int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;
	struct flow *f;

	(void)what;
	if (client < 0)
		return;
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	f = flow_new(d->e, client, d->kind);
	if (d->kind != FLOW_FORWARD) {
		EVENT_TEXT(f->host, d->host);
		f->port = d->host_port;
	}
	f->protocol = d->protocol;
	http_take(f);
}

static bool open_door(struct egress *e, char *text)
{
	struct door *d = &doors[ndoors];
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const char *port = strtok(text, ":"), *kind = strtok(NULL, ":"), *host = strtok(NULL, ":");
	const char *host_port = strtok(NULL, ":"), *to = strtok(NULL, ":");
	uint64_t p, hp, t;
	int one = 1;

	if (!to || num_parse_u64(port, 65535, &p) < 0 || num_parse_u64(host_port, 65535, &hp) < 0 ||
	    num_parse_u64(to, 65535, &t) < 0)
		return false;
	*d = (struct door){
		.e = e, .port = (uint16_t)p, .host_port = (uint16_t)hp, .to = (uint16_t)t};
	EVENT_TEXT(d->host, host);
	d->kind = strcmp(kind, "forward") == 0 ? FLOW_FORWARD : FLOW_TRANSPARENT;
	d->protocol = strcmp(kind, "tls") == 0 ? NETWORK_TLS : NETWORK_HTTP;
	ndoors++;
	if (p == 0) /* only a host to dial */
		return true;
	d->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	a.sin_port = htons((uint16_t)p);
	setsockopt(d->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(d->fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(d->fd, 1024) < 0) {
		perror("http_door: listen");
		return false;
	}
	d->ev = event_new(e->base, d->fd, EV_READ | EV_PERSIST, on_accept, d);
	event_add(d->ev, NULL);
	return true;
}

static void on_usr1(evutil_socket_t fd, short what, void *arg)
{
	struct mallinfo2 m = mallinfo2();

	(void)fd;
	(void)what;
	(void)arg;
	printf("{\"what\":\"memory\",\"bytes\":%zu,\"flows\":%zu}\n", m.uordblks + m.hblkhd,
	       nflows);
	fflush(stdout);
}

static int read_rules(struct config *c, const char *name)
{
	struct policy *p = NULL;
	struct pale_err err;

	if (policy_new(&p, &err) < 0 || policy_load(p, name, &err) < 0) {
		fprintf(stderr, "http_door: %s\n", err.message);
		policy_free(p);
		return -1;
	}
	policy_free(c->policy);
	c->policy = p;
	c->network = &p->network;
	return 0;
}

static void on_rules(evutil_socket_t fd, short what, void *arg)
{
	struct egress *e = arg;
	struct flow *f, *next;
	char line[512];
	ssize_t n = read(fd, line, sizeof(line) - 1);

	(void)what;
	if (n <= 0) {
		event_base_loopbreak(e->base);
		return;
	}
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (read_rules(e->config, line) < 0)
		return;
	for (f = TAILQ_FIRST(&flows); f; f = next) {
		next = TAILQ_NEXT(f, entry);
		if (f->carrier->covered(f))
			continue;
		f->carrier->drop(f);
		flow_end(f, EGRESS_BLOCKED, "the rules have changed");
	}
	printf("{\"what\":\"rules\"}\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct config_secret secrets[16] = {0};
	struct config c = {.secrets = secrets};
	struct egress e = {.config = &c, .base = event_base_new()};
	_cleanup_buf_ struct buf trust = BUF_INIT(4u << 20);
	_cleanup_free_ struct egress_message *m = calloc(1, sizeof(*m));
	struct pale_err err = {0};
	int control[2], i = 3;
	FILE *in;

	signal(SIGPIPE, SIG_IGN);
	if (argc < 4 || !e.base || !m || read_rules(&c, argv[1]) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		return 2;
	in = fopen(argv[2], "re");
	if (!in || buf_read_fd(&trust, fileno(in)) < 0)
		return 2;
	fclose(in);
	c.trust = trust.data;
	c.trust_len = trust.len;
	for (; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!open_door(&e, argv[i]))
			return 2;
	for (i++; i + 1 < argc && c.nsecrets < ARRAY_SIZE(secrets); i += 2)
		secrets[c.nsecrets++] = (struct config_secret){argv[i], argv[i + 1]};
	e.control = control[0];
	if (http_new(&e, &e.http, &err) < 0) {
		fprintf(stderr, "http_door: %s\n", err.message);
		return 2;
	}
	if (read(control[1], m, sizeof(*m)) > 0 && m->kind == EGRESS_CA)
		printf("%s", m->text);
	printf("ready\n");
	fflush(stdout);
	struct event *usr1 = evsignal_new(e.base, SIGUSR1, on_usr1, NULL);
	struct event *rules = event_new(e.base, 0, EV_READ | EV_PERSIST, on_rules, &e);

	event_add(usr1, NULL);
	event_add(rules, NULL);
	event_base_dispatch(e.base);
	for (struct flow *f; (f = TAILQ_FIRST(&flows));) {
		if (f->carrier)
			f->carrier->drop(f);
		flow_end(f, EGRESS_ALLOWED, "the door closes");
	}
	event_free(usr1);
	event_free(rules);
	for (size_t k = 0; k < ndoors; k++)
		if (doors[k].ev) {
			event_free(doors[k].ev);
			close(doors[k].fd);
		}
	http_free(e.http);
	policy_free(c.policy);
	event_base_free(e.base);
	return 0;
}
