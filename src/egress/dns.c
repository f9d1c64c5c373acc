/* The box's DNS server: see dns.h.
 *
 * Runs in the broker, on sockets made in the box's network namespace. Hostile: every query, how
 * many there are, and how slowly a TCP client sends or reads. Bounds: one buffer for UDP, TCP_MAX
 * clients with a fixed buffer each, and a time-out. */
#include "egress/dns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/listener.h"
#include "egress/synthetic.h"
#include "egress/udp.h"

#define TTL_S	   30 /* of a positive answer: an address stands for its name far longer */
#define NEGATIVE_S 5  /* rules can be widened while the box runs */
#define TCP_MAX	   64
#define TCP_IDLE_S 10
#define UDP_BATCH  64 /* queries answered before others get their turn */

struct client {
	struct dns *d;
	int fd; /* -1: free */
	struct event *event;
	size_t got, sent, out_len;
	uint8_t in[2 + DNS_QUERY_MAX], out[2 + DNS_ANSWER_MAX];
};

struct dns {
	struct egress *e;
	struct event *udp[2];
	struct listener *tcp[2];
	struct client *clients[TCP_MAX];
	size_t nclients;
};

static void tell(struct egress *e, const struct dns_query *q, const char *host, int rule,
		 enum egress_outcome outcome, const char *detail)
{
	struct egress_event ev = {
		.outcome = outcome, .what = EGRESS_LOOKUP, .rule = rule, .query = q->type};

	EVENT_TEXT(ev.host, host ? host : q->name);
	EVENT_TEXT(ev.detail, detail);
	event_tell(e, &ev);
}

/* "localhost" and what is below it never leave a machine (RFC 6761). */
static bool is_localhost(const char *host)
{
	size_t len = strlen(host);

	return strcmp(host, "localhost") == 0 ||
	       (len > 10 && strcmp(host + len - 10, ".localhost") == 0);
}

static enum dns_code answer_reverse(struct egress *e, const struct dns_query *q, int family,
				    const struct in6_addr *address, struct dns_answer *a)
{
	const struct synthetic_name *n = synthetic_find(e->synthetic, family, address);

	if (n) {
		if (q->type == DNS_PTR || q->type == DNS_ANY)
			dns_add_ptr(a, n->host, TTL_S);
		return DNS_OK;
	}
	/* No event: programs ask for the names of whoever talks to them, their own address too, and
	 * nothing was kept from them. */
	return DNS_NXDOMAIN;
}

static void add_addresses(const struct dns_query *q, const struct in_addr *a4,
			  const struct in6_addr *a6, struct dns_answer *a)
{
	if (q->type == DNS_A || q->type == DNS_ANY)
		dns_add_a(a, a4, TTL_S);
	if (q->type == DNS_AAAA || q->type == DNS_ANY)
		dns_add_aaaa(a, a6, TTL_S);
}

static enum dns_code answer_name(struct egress *e, const struct dns_query *q, const char *host,
				 struct dns_answer *a)
{
	struct network_question ask = {.host = host};
	struct network_answer said = network_ask(e->config->network, &ask);
	struct synthetic_name *n;
	struct in_addr a4;
	struct in6_addr a6;

	if (!said.allowed && !said.named) {
		tell(e, q, host, said.rule, EGRESS_BLOCKED, "no rule names it");
		return DNS_NXDOMAIN;
	}
	n = synthetic_get(e->synthetic, host);
	if (!n) {
		tell(e, q, host, said.rule, EGRESS_UNREACHABLE, "too many names in use");
		return DNS_SERVFAIL;
	}
	/* A name that is there to be refused in words is told when something connects to it. */
	if (said.allowed) {
		tell(e, q, host, said.rule, EGRESS_ALLOWED, NULL);
		udp_open(e, n);
	}
	synthetic_address4(n, &a4);
	synthetic_address6(n, &a6);
	add_addresses(q, &a4, &a6, a);
	return DNS_OK;
}

static enum dns_code answer_query(struct egress *e, const struct dns_query *q, struct dns_answer *a)
{
	const struct in_addr loopback4 = {htonl(INADDR_LOOPBACK)};
	char host[NETWORK_HOST_MAX + 1];
	struct in6_addr reverse;
	int family;

	if (q->name[0] == '\0')
		return DNS_OK; /* the root: "is there a server?"; there is, and no data */
	if (dns_reverse(q->name, &family, &reverse))
		return answer_reverse(e, q, family, &reverse, a);
	if (network_host_normalise(q->name, strlen(q->name), host) < 0) {
		tell(e, q, NULL, -1, EGRESS_BLOCKED, "not a host name");
		return DNS_NXDOMAIN;
	}
	if (is_localhost(host)) {
		add_addresses(q, &loopback4, &in6addr_loopback, a);
		return DNS_OK;
	}
	return answer_name(e, q, host, a);
}

bool dns_answer(struct egress *e, const uint8_t *query, size_t len, struct dns_answer *ret)
{
	struct dns_query q;
	enum dns_code code;

	if (dns_parse(query, len, &q) < 0)
		return false;
	dns_begin(ret, &q);
	code = q.code == DNS_OK ? answer_query(e, &q, ret) : q.code;
	dns_finish(ret, &q, code, NEGATIVE_S);
	return true;
}

/* ---------------------------------------------------------------- UDP */

/* Answers from the address that was asked: a resolver takes no other's. */
static void on_udp(evutil_socket_t fd, short what, void *arg)
{
	struct dns *d = arg;

	(void)what;
	for (int i = 0; i < UDP_BATCH; i++) {
		union {
			struct cmsghdr align;
			char space[256];
		} control;
		uint8_t query[DNS_QUERY_MAX];
		struct sockaddr_storage from;
		struct iovec iov = {query, sizeof(query)};
		struct msghdr msg = {
			.msg_name = &from,
			.msg_namelen = sizeof(from),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.space,
			.msg_controllen = sizeof(control.space),
		};
		struct dns_answer a;
		ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);

		if (n < 0)
			return;
		if ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
		    !dns_answer(d->e, query, (size_t)n, &a))
			continue;
		/* The packet information that came is the one that goes: for IPv4 the source is
		 * taken from ipi_spec_dst, which the kernel has set to the local address. */
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
			struct in_pktinfo info;

			if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_PKTINFO)
				continue;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			info.ipi_spec_dst = info.ipi_addr;
			info.ipi_ifindex = 0;
			memcpy(CMSG_DATA(c), &info, sizeof(info));
		}
		iov = (struct iovec){a.data, a.len};
		msg.msg_flags = 0;
		(void)!sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

/* ---------------------------------------------------------------- TCP */

static void client_close(struct client *c)
{
	if (c->event)
		event_free(c->event);
	close_fd(&c->fd);
	for (size_t i = 0; i < TCP_MAX; i++)
		if (c->d->clients[i] == c)
			c->d->clients[i] = NULL;
	c->d->nclients--;
	free(c);
}

static bool client_write(struct client *c)
{
	while (c->sent < c->out_len) {
		ssize_t n = send(c->fd, c->out + c->sent, c->out_len - c->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN;
		c->sent += (size_t)n;
	}
	c->sent = c->out_len = 0;
	return true;
}

/* Takes up each whole query that is there; one answer at a time is underway. */
static bool client_take(struct client *c)
{
	while (c->out_len == 0 && c->got >= 2) {
		size_t len = (size_t)c->in[0] << 8 | c->in[1];
		struct dns_answer a;

		if (len > DNS_QUERY_MAX)
			return false;
		if (c->got < 2 + len)
			break;
		if (!dns_answer(c->d->e, c->in + 2, len, &a))
			return false;
		c->got -= 2 + len;
		memmove(c->in, c->in + 2 + len, c->got);
		c->out[0] = (uint8_t)(a.len >> 8);
		c->out[1] = (uint8_t)a.len;
		memcpy(c->out + 2, a.data, a.len);
		c->out_len = 2 + a.len;
		if (!client_write(c))
			return false;
	}
	return true;
}

static void client_wait(struct client *c);

static void on_client(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;

	if (what & EV_TIMEOUT) {
		client_close(c);
		return;
	}
	if (c->out_len) {
		if (!client_write(c)) {
			client_close(c);
			return;
		}
	} else {
		ssize_t n = recv(fd, c->in + c->got, sizeof(c->in) - c->got, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			client_close(c);
			return;
		}
		c->got += n > 0 ? (size_t)n : 0;
	}
	if (client_take(c))
		client_wait(c);
	else
		client_close(c);
}

static void client_wait(struct client *c)
{
	const struct timeval idle = {.tv_sec = TCP_IDLE_S};

	if (event_assign(c->event, c->d->e->base, c->fd, c->out_len ? EV_WRITE : EV_READ, on_client,
			 c) < 0 ||
	    event_add(c->event, &idle) < 0)
		client_close(c);
}

static void on_tcp(int client, void *arg)
{
	struct dns *d = arg;
	struct client *c = d->nclients < TCP_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		close(client);
		return;
	}
	c->d = d;
	c->fd = client;
	for (size_t i = 0; i < TCP_MAX; i++)
		if (!d->clients[i]) {
			d->clients[i] = c;
			break;
		}
	d->nclients++;
	c->event = event_new(d->e->base, client, EV_READ, on_client, c);
	if (c->event)
		client_wait(c);
	else
		client_close(c);
}

int dns_new(struct egress *e, struct dns **ret)
{
	struct dns *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->e = e;
	for (int i = 0; i < 2; i++) {
		d->udp[i] = event_new(e->base, e->sockets[EGRESS_DNS_UDP4 + i],
				      EV_READ | EV_PERSIST, on_udp, d);
		d->tcp[i] = listener_new(e->base, e->sockets[EGRESS_DNS_TCP4 + i], on_tcp, d);
		if (!d->udp[i] || !d->tcp[i] || event_add(d->udp[i], NULL) < 0) {
			dns_free(d);
			return -ENOMEM;
		}
	}
	*ret = d;
	return 0;
}

void dns_free(struct dns *d)
{
	if (!d)
		return;
	for (int i = 0; i < 2; i++) {
		if (d->udp[i])
			event_free(d->udp[i]);
		listener_free(d->tcp[i]);
	}
	for (size_t i = 0; i < TCP_MAX; i++)
		if (d->clients[i])
			client_close(d->clients[i]);
	free(d);
}
