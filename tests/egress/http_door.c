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
#include "base/fd.h"
#include "base/num.h"
#include "egress/http/engine.h"
#include "http_stub.h"

struct door {
	struct egress *e;
	int fd;
	enum flow_door kind;
	enum network_protocol protocol;
	char host[NETWORK_HOST_MAX + 1];
	uint16_t port, host_port, to;
	struct event *ev;
};

static struct door doors[16];
static size_t ndoors;

/* The server behind the door that the flow came in by; of a proxy's flow, behind the one that has
 * the host's name. */
static int dial(const struct flow *f, const char *host)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd, one = 1;

	if (f && f->door != FLOW_FORWARD)
		getsockname(f->client, (struct sockaddr *)&a, &len);
	for (size_t i = 0; i < ndoors; i++)
		if (f && f->door != FLOW_FORWARD ? doors[i].port == ntohs(a.sin_port)
						 : host && strcmp(doors[i].host, host) == 0) {
			a.sin_port = htons(doors[i].to);
			break;
		}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		return -1;
	}
	fd_set_nonblock(fd, true);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void print_event(const struct egress_event *ev)
{
	static const char *const outcomes[] = {"",	  "allowed",	 "opened",
					       "blocked", "unreachable", "exfiltration"};
	json_t *j =
		json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:i}",
			  "what", ev->what == EGRESS_REQUEST ? "request" : "connection", "outcome",
			  outcomes[ev->outcome], "rule", ev->rule, "status", ev->status, "host",
			  ev->host, "method", ev->method, "path", ev->path, "detail", ev->detail,
			  "sni", ev->sni, "in", (json_int_t)ev->bytes_in, "out",
			  (json_int_t)ev->bytes_out, "address", ev->address, "port", ev->port);

	json_dumpf(j, stdout, JSON_COMPACT);
	printf("\n");
	fflush(stdout);
	json_decref(j);
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
	if (!f) {
		close(client);
		return;
	}
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
	       stub_nflows);
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
	stub_recheck();
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
	stub_dial = dial;
	stub_event = print_event;
	if (http_new(&e, &e.http, &err) < 0) {
		fprintf(stderr, "http_door: %s\n", err.message);
		return 2;
	}
	/* Tests cannot wait for as long as is usual. */
	const char *head_ms = getenv("HTTP_DOOR_HEAD_MS");

	if (head_ms)
		e.http->head_us = strtoull(head_ms, NULL, 10) * 1000;
	if (read(control[1], m, sizeof(*m)) > 0 && m->kind == EGRESS_CA)
		printf("%s", m->text);
	printf("ready\n");
	fflush(stdout);
	struct event *usr1 = evsignal_new(e.base, SIGUSR1, on_usr1, NULL);
	struct event *rules = event_new(e.base, 0, EV_READ | EV_PERSIST, on_rules, &e);

	event_add(usr1, NULL);
	event_add(rules, NULL);
	event_base_dispatch(e.base);
	stub_end_all();
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
