/* Network calls of the box: where they wanted to go. In the supervisor; every address is hostile.
 * Loopback and Unix sockets stay in the box and are no events. */
#include "supervise/notify_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

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

/* False: nothing to tell. */
static bool describe(const union address *a, size_t len, struct notify_event *ev)
{
	if (len < sizeof(sa_family_t))
		return false;
	switch (a->sa.sa_family) {
	case AF_UNSPEC: /* takes a datagram socket's peer away */
	case AF_UNIX:
	case AF_NETLINK: return false;
	case AF_INET:
		if (len < sizeof(a->in) || is_loopback4(ntohl(a->in.sin_addr.s_addr)))
			return false;
		inet_ntop(AF_INET, &a->in.sin_addr, ev->address, sizeof(ev->address));
		ev->port = ntohs(a->in.sin_port);
		return true;
	case AF_INET6: {
		const struct in6_addr *ip = &a->in6.sin6_addr;
		uint32_t last;

		/* Without the scope, as the kernel's older callers pass it. */
		if (len < offsetof(struct sockaddr_in6, sin6_scope_id))
			return false;
		memcpy(&last, ip->s6_addr + 12, 4);
		if (IN6_IS_ADDR_LOOPBACK(ip) || IN6_IS_ADDR_UNSPECIFIED(ip) ||
		    (IN6_IS_ADDR_V4MAPPED(ip) && is_loopback4(ntohl(last))))
			return false;
		if (IN6_IS_ADDR_V4MAPPED(ip))
			inet_ntop(AF_INET, ip->s6_addr + 12, ev->address, sizeof(ev->address));
		else
			inet_ntop(AF_INET6, ip, ev->address, sizeof(ev->address));
		ev->port = ntohs(a->in6.sin6_port);
		return true;
	}
	default:
		snprintf(ev->address, sizeof(ev->address), "family %u", a->sa.sa_family);
		return true;
	}
}

static void tell(struct notify_call *call, uint64_t address, uint64_t len, bool connects)
{
	union address a = {0};
	struct notify_event *ev = notify_scratch(call->n);

	if (!address)
		return;
	if (len > sizeof(a))
		len = sizeof(a); /* the kernel refuses longer ones */
	if (notify_read(call->pid, address, &a, (size_t)len) < 0)
		return;
	if (a.sa.sa_family == AF_INET && is_loopback4(ntohl(a.in.sin_addr.s_addr)) &&
	    ntohs(a.in.sin_port) == 53)
		notify_resolver(call);
	if (!describe(&a, (size_t)len, ev))
		return;
	ev->kind = NOTIFY_NETWORK;
	ev->op = connects ? NOTIFY_OP_CONNECT : NOTIFY_OP_SEND;
	ev->protocol = notify_read_protocol(call->pid, (int)call->args[0]);
	if (connects && strcmp(ev->protocol, "udp") == 0)
		ev->op = NOTIFY_OP_PROBE;
	notify_report(call, ev);
}

static void tell_message(struct notify_call *call, uint64_t message)
{
	struct msghdr m;

	/* The layout is the box's own: its filter lets no other architecture's call come here. */
	if (notify_read(call->pid, message, &m, offsetof(struct msghdr, msg_iov)) == 0)
		tell(call, (uint64_t)(uintptr_t)m.msg_name, m.msg_namelen, false);
}

void notify_net(struct notify_call *call)
{
	const uint64_t *args = call->args;
	uint32_t messages;

	switch (call->nr) {
	case SYS_connect: tell(call, args[1], (uint32_t)args[2], true); return;
	case SYS_sendto: tell(call, args[4], (uint32_t)args[5], false); return;
	case SYS_sendmsg: tell_message(call, args[1]); return;
	case SYS_sendmmsg:
		messages = (uint32_t)args[2];
		for (uint32_t i = 0; i < messages && i < MAX_MESSAGES; i++)
			tell_message(call, args[1] + i * sizeof(struct mmsghdr));
		return;
	}
}
