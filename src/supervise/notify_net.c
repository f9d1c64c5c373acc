/* Network calls of the box: where they wanted to go. In the supervisor; every address is hostile.
 * Loopback and Unix sockets stay in the box and are no events. With network rules, what leads to
 * the broker is the broker's to tell, and only remembered with its program. */
#include "supervise/notify_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "egress/wire.h"

/* Of one sendmmsg(): the rest is not looked at. */
#define MAX_MESSAGES 16

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	char bytes[sizeof(struct sockaddr_storage)];
};

bool notify_is_net(int nr)
{
	return nr == SYS_connect || nr == SYS_sendto || nr == SYS_sendmsg || nr == SYS_sendmmsg;
}

static bool is_loopback4(uint32_t host_order)
{
	/* 0.0.0.0 as a destination is this machine. */
	return host_order >> 24 == 127 || host_order == 0;
}

/* Where a call goes: an Internet address, unmapped, or something else. */
struct target {
	int family; /* AF_INET, AF_INET6; 0: nothing that leaves the process's machine */
	union {
		struct in_addr v4;
		struct in6_addr v6;
	};
	uint16_t port;
	bool loopback;
	bool other; /* of a family that has no business here */
};

static struct target target_of(const union address *a, size_t len)
{
	struct target t = {0};

	if (len < sizeof(sa_family_t))
		return t;
	switch (a->sa.sa_family) {
	case AF_UNSPEC: /* takes a datagram socket's peer away */
	case AF_UNIX:
	case AF_NETLINK: return t;
	case AF_INET:
		if (len < sizeof(a->in))
			return t;
		t.family = AF_INET;
		t.v4 = a->in.sin_addr;
		t.port = ntohs(a->in.sin_port);
		break;
	case AF_INET6:
		/* Without the scope, as the kernel's older callers pass it. */
		if (len < offsetof(struct sockaddr_in6, sin6_scope_id))
			return t;
		t.port = ntohs(a->in6.sin6_port);
		t.family = IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr) ? AF_INET : AF_INET6;
		if (t.family == AF_INET)
			memcpy(&t.v4, a->in6.sin6_addr.s6_addr + 12, 4);
		else
			t.v6 = a->in6.sin6_addr;
		break;
	default: t.other = true; return t;
	}
	t.loopback = t.family == AF_INET
			     ? is_loopback4(ntohl(t.v4.s_addr))
			     : IN6_IS_ADDR_LOOPBACK(&t.v6) || IN6_IS_ADDR_UNSPECIFIED(&t.v6);
	return t;
}

static bool in_range(const struct target *t, const char *first, unsigned bits)
{
	struct network_cidr range = {.family = t->family, .bits = bits};

	return inet_pton(t->family, first, &range.address) == 1 &&
	       network_cidr_contains(&range, t->family, &t->v6);
}

/* The box's own address, or one that stands for a name: those are the broker's to tell. */
static bool is_inside(const struct target *t)
{
	return t->family == AF_INET
		       ? in_range(t, EGRESS_OWN4, 32) || in_range(t, EGRESS_SYNTHETIC4, 16)
		       : in_range(t, EGRESS_OWN6, 128) || in_range(t, EGRESS_SYNTHETIC6, 112);
}

/* Something to an address that stands for a name, at a port that no rule for datagrams has: no
 * socket of the broker's is there to tell of it. */
static bool is_lost(const struct policy_network *network, const struct target *t)
{
	bool stands = t->family == AF_INET ? in_range(t, EGRESS_SYNTHETIC4, 16)
					   : in_range(t, EGRESS_SYNTHETIC6, 112);

	for (size_t i = 0; stands && i < network->nrules; i++) {
		const struct network_rule *r = &network->rules[i];

		if (r->deny || !r->host || !(r->protocols & NETWORK_UDP))
			continue;
		for (size_t j = 0; j < r->nports; j++)
			if (t->port >= r->ports[j].first && t->port <= r->ports[j].last)
				return false;
	}
	return stands;
}

static bool is_covered(const struct policy_network *network, const struct target *t,
		       const char *protocol)
{
	const struct network_question q = {.family = t->family, .address = &t->v6, .port = t->port};
	struct network_answer a;

	/* What is spoken over TCP shows later. A rule that denies is the broker's to tell. */
	if (strcmp(protocol, "udp") == 0) {
		struct network_question udp = q;

		udp.protocol = NETWORK_UDP;
		a = network_ask(network, &udp);
	} else {
		a = network_ask(network, &q);
	}
	return a.allowed;
}

static void describe(const struct target *t, const union address *a, struct notify_event *ev)
{
	if (t->other)
		snprintf(ev->address, sizeof(ev->address), "family %u", a->sa.sa_family);
	else
		inet_ntop(t->family, &t->v6, ev->address, sizeof(ev->address));
	ev->port = t->port;
}

struct rules {
	const struct policy_network *network; /* or NULL */
	bool refuse; /* not where nested sandboxes have networks of their own, whose addresses
			these need not be */
};

/* EACCES for what is refused at once, else 0. */
static int tell(struct notify_call *call, const struct rules *rules, uint64_t address, uint64_t len,
		bool connects)
{
	const struct policy_network *network = rules->network;
	union address a = {0};
	struct notify_event *ev;
	struct target t;
	const char *protocol;
	int fd = (int)call->args[0];
	bool refused;

	if (!address)
		return 0;
	if (len > sizeof(a))
		len = sizeof(a); /* the kernel refuses longer ones */
	if (notify_read(call->pid, address, &a, (size_t)len) < 0)
		return 0;
	t = target_of(&a, (size_t)len);
	if (t.port == 53 && (network || (t.family == AF_INET && t.loopback)))
		notify_resolver(call);
	if (!t.other && (!t.family || (t.loopback && !network)))
		return 0;
	if (network && !t.other) {
		bool inside = t.loopback || is_inside(&t);

		if (t.loopback && t.port != EGRESS_PROXY_PORT)
			return 0;
		if (t.port == 53)
			return 0;
		/* The usual case, and the only one for which somebody waits: the less is read, the
		 * sooner it goes on. */
		protocol = inside && connects ? "" : notify_read_protocol(call->pid, fd);
		if (!connects && strcmp(protocol, "udp") == 0 && is_lost(network, &t))
			inside = false;
		if (inside || is_covered(network, &t, protocol)) {
			notify_connects(call, fd);
			return 0;
		}
	} else {
		protocol = notify_read_protocol(call->pid, fd);
	}
	ev = notify_scratch(call->n);
	describe(&t, &a, ev);
	ev->kind = NOTIFY_NETWORK;
	ev->op = connects ? NOTIFY_OP_CONNECT : NOTIFY_OP_SEND;
	ev->protocol = protocol;
	if (connects && strcmp(protocol, "udp") == 0)
		ev->op = NOTIFY_OP_PROBE;
	/* A peer for a datagram socket is how programs ask for their own address, and costs
	 * nothing: what is then sent meets nobody. */
	refused = network && rules->refuse && ev->op != NOTIFY_OP_PROBE;
	if (refused)
		ev->error = EACCES;
	notify_report(call, ev);
	return refused ? EACCES : 0;
}

static int tell_message(struct notify_call *call, const struct rules *rules, uint64_t message)
{
	struct msghdr m;

	/* The layout is the box's own: its filter lets no other architecture's call come here. */
	if (notify_read(call->pid, message, &m, offsetof(struct msghdr, msg_iov)) < 0)
		return 0;
	return tell(call, rules, (uint64_t)(uintptr_t)m.msg_name, m.msg_namelen, false);
}

int notify_net(struct notify_call *call, const struct policy_network *network, bool refuse)
{
	const struct rules all = {network, refuse}, *rules = &all;
	const uint64_t *args = call->args;
	uint32_t messages;
	int r = 0;

	switch (call->nr) {
	case SYS_connect: return tell(call, rules, args[1], (uint32_t)args[2], true);
	case SYS_sendto: return tell(call, rules, args[4], (uint32_t)args[5], false);
	case SYS_sendmsg: return tell_message(call, rules, args[1]);
	case SYS_sendmmsg:
		messages = (uint32_t)args[2];
		for (uint32_t i = 0; i < messages && i < MAX_MESSAGES; i++) {
			int one = tell_message(call, rules, args[1] + i * sizeof(struct mmsghdr));

			r = r ? r : one;
		}
		break;
	}
	return r;
}
