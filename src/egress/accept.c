/* The transparent door: see accept.h.
 *
 * Runs in the broker, on listeners made in the box's network namespace. With TPROXY the accepted
 * socket's own name is where the client wanted to go; with REDIRECT the kernel's connection
 * tracking remembers it. Hostile: who connects where, how often, and whether directly to the
 * listener's port, which would name no destination: that is refused. */
#include "egress/accept.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter_ipv4.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/client.h"
#include "egress/inspect.h"
#include "egress/linger.h"
#include "egress/listener.h"
#include "egress/synthetic.h"

#ifndef IP6T_SO_ORIGINAL_DST
#define IP6T_SO_ORIGINAL_DST 80
#endif

struct accept {
	struct egress *e;
	struct listener *listeners[2];
};

bool accept_is_inside(int family, const void *address)
{
	struct in_addr own4, a;
	struct in6_addr own6, b;

	if (family == AF_INET) {
		inet_pton(AF_INET, EGRESS_OWN4, &own4);
		memcpy(&a, address, sizeof(a));
		return ntohl(a.s_addr) >> 24 == 127 || a.s_addr == 0 || a.s_addr == own4.s_addr;
	}
	inet_pton(AF_INET6, EGRESS_OWN6, &own6);
	memcpy(&b, address, sizeof(b));
	if (IN6_IS_ADDR_V4MAPPED(&b))
		return accept_is_inside(AF_INET, b.s6_addr + 12);
	return IN6_IS_ADDR_LOOPBACK(&b) || IN6_IS_ADDR_UNSPECIFIED(&b) ||
	       memcmp(&b, &own6, sizeof(b)) == 0;
}

bool accept_name(struct flow *f, int family, const void *address)
{
	struct synthetic_name *n;

	/* ::ffff:a.b.c.d is IPv4 in other clothes. */
	if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)address)) {
		family = AF_INET;
		address = (const uint8_t *)address + 12;
	}
	if (!synthetic_is(family, address)) {
		f->family = family;
		memcpy(&f->address, address, family == AF_INET ? 4 : 16);
		return true;
	}
	n = synthetic_find(f->e->synthetic, family, address);
	if (!n) {
		f->family = family;
		memcpy(&f->address, address, family == AF_INET ? 4 : 16);
		return false;
	}
	synthetic_hold(n);
	f->name = n;
	memcpy(f->host, n->host, sizeof(f->host));
	return true;
}

/* Where the client wanted to go. */
static bool destination(const struct egress *e, int client, struct sockaddr_storage *ret)
{
	socklen_t len = sizeof(*ret);

	if (e->config->mode == EGRESS_TPROXY)
		return getsockname(client, (struct sockaddr *)ret, &len) == 0;
	if (getsockopt(client, SOL_IP, SO_ORIGINAL_DST, ret, &len) == 0)
		return true;
	len = sizeof(*ret);
	return getsockopt(client, SOL_IPV6, IP6T_SO_ORIGINAL_DST, ret, &len) == 0;
}

static uint16_t split(const struct sockaddr_storage *from, const void **ret_address)
{
	if (from->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)from;

		*ret_address = &in->sin_addr;
		return ntohs(in->sin_port);
	}

	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;

	*ret_address = &in6->sin6_addr;
	return ntohs(in6->sin6_port);
}

/* For a connection that becomes no flow. */
static void tell(struct egress *e, int family, const void *address, uint16_t port,
		 enum egress_outcome outcome, const char *detail)
{
	struct egress_event ev = {
		.outcome = outcome, .what = EGRESS_CONNECTION, .rule = -1, .port = port};

	inet_ntop(family, address, ev.address, sizeof(ev.address));
	EVENT_TEXT(ev.detail, detail);
	event_tell(e, &ev);
}

static void on_client(int client, void *arg)
{
	struct accept *a = arg;
	struct sockaddr_storage to, from;
	socklen_t len = sizeof(from);
	const void *address, *source;
	uint16_t port;
	struct flow *f;

	if (!destination(a->e, client, &to) ||
	    (to.ss_family != AF_INET && to.ss_family != AF_INET6)) {
		/* Directly to the listener's port, where the destination is asked of connection
		 * tracking. */
		linger_reset(client);
		return;
	}
	port = split(&to, &address);
	if (accept_is_inside(to.ss_family, address)) {
		tell(a->e, to.ss_family, address, port, EGRESS_BLOCKED,
		     "connected to the broker's own port");
		linger_reset(client);
		return;
	}
	f = flow_new(a->e, client, FLOW_TRANSPARENT);
	if (!f) {
		tell(a->e, to.ss_family, address, port, EGRESS_BLOCKED,
		     "too many connections are open at a time");
		linger_reset(client);
		return;
	}
	f->port = port;
	if (getpeername(client, (struct sockaddr *)&from, &len) == 0 &&
	    (from.ss_family == AF_INET || from.ss_family == AF_INET6)) {
		f->source_port = split(&from, &source);
		f->source_family = from.ss_family == AF_INET ? 4 : 6;
		f->client_inode = client_inode(a->e->sockets[EGRESS_DIAG], IPPROTO_TCP, &from, &to);
	}
	if (accept_name(f, to.ss_family, address))
		inspect_start(f);
	else
		flow_refuse(f, -1,
			    "this address stands for no name: it was not looked up, or long "
			    "ago");
}

int accept_new(struct egress *e, struct accept **ret)
{
	struct accept *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->e = e;
	a->listeners[0] = listener_new(e->base, e->sockets[EGRESS_TCP4], on_client, a);
	a->listeners[1] = listener_new(e->base, e->sockets[EGRESS_TCP6], on_client, a);
	if (!a->listeners[0] || !a->listeners[1]) {
		accept_free(a);
		return -ENOMEM;
	}
	*ret = a;
	return 0;
}

void accept_free(struct accept *a)
{
	if (!a)
		return;
	listener_free(a->listeners[0]);
	listener_free(a->listeners[1]);
	free(a);
}
