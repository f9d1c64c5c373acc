/* Connections to the other side: see flow.h (dial_start()).
 *
 * Runs in the broker, in the host's network namespace. Hostile: the addresses that name servers
 * give (a name that is allowed may resolve to the host's loopback or to a cloud's metadata), and
 * how many connections the box wants. The address that is checked is the one that is dialled, and
 * each dial checks anew.
 *
 * Happy eyeballs (RFC 8305): both families are looked up at once; when IPv4 answers first, IPv6 has
 * RESOLUTION_MS more; then addresses are tried in turn, ATTEMPT_MS apart, the families taking
 * turns, and the first that connects wins. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "egress/cap.h"
#include "egress/flow.h"
#include "egress/resolve.h"
#include "egress/route.h"

#define RESOLUTION_MS 50
#define ATTEMPT_MS    250
#define DEADLINE_MS   20000
#define ATTEMPTS_MAX  8

struct attempt {
	struct dial *d;
	int fd; /* -1: free */
	struct event *event;
	int family;
	struct in6_addr address;
};

struct dial {
	struct egress *e;
	char host[NETWORK_HOST_MAX + 1];
	int family; /* of a literal address */
	uint16_t port;
	int rule;
	enum network_protocol protocol;
	dial_cb cb;
	void *arg;
	struct lookup *lookups[2]; /* IPv6, IPv4 */
	bool answered[2];
	struct resolve_result found[2];
	size_t used[2]; /* of found, tried or refused */
	int turn;	/* family to try next */
	struct attempt attempts[ATTEMPTS_MAX];
	size_t nattempts, running;
	struct event *timer, *done;
	unsigned changes;	       /* of the rules, when `rule` was asked for */
	uint64_t deadline_us, next_us; /* 0: no next attempt is due */
	uint64_t hold_us;	       /* until then nothing is connected: a rate is used up */
	bool resolution_over, finished;
	struct dial_result result;
	int error;	   /* of the last attempt */
	char blocked[160]; /* why the last address was refused */
	char unfit[46];	   /* that address */
};

static void advance(struct dial *d);

/* ---------------------------------------------------------------- the check */

/* The rules may have been changed since the caller asked; its index is of the old ones then. */
static bool still_allowed(struct dial *d)
{
	const struct network_question ask = {
		.host = d->host[0] ? d->host : NULL,
		.family = d->family,
		.address = d->host[0] ? NULL : &d->found[d->family == AF_INET].address[0],
		.port = d->port,
		.protocol = d->protocol,
	};
	struct network_answer said;

	if (d->changes == d->e->changes)
		return true;
	said = network_ask(d->e->config->network, &ask);
	d->changes = d->e->changes;
	d->rule = said.rule;
	return said.allowed;
}

/* The last address of a range. */
static struct in6_addr range_end(const struct network_cidr *c)
{
	struct in6_addr last = c->address;
	unsigned len = c->family == AF_INET ? 32 : 128;

	for (unsigned bit = c->bits; bit < len; bit++)
		last.s6_addr[bit / 8] = (uint8_t)(last.s6_addr[bit / 8] | 0x80 >> bit % 8);
	return last;
}

/* Who writes 0.0.0.0/0 means the internet, and not the machine's loopback or a cloud's metadata:
 * such addresses are named only by a range that has nothing else in it. */
static bool names_private(const struct network_cidr *c)
{
	struct in6_addr last;

	if (!c || c->bits < (c->family == AF_INET ? 8u : 7u))
		return false;
	last = range_end(c);
	return !network_address_public(c->family, &c->address) &&
	       !network_address_public(c->family, &last);
}

/* And those of the machine itself only one by one, or as loopback: a rule for the network that the
 * machine is in, too, means the others there. */
static bool names_own(const struct network_cidr *c)
{
	if (!c)
		return false;
	if (c->family == AF_INET)
		return c->bits == 32 || (c->bits >= 8 && c->address.s6_addr[0] == 127);
	return c->bits == 128;
}

/* Is this address fit to be dialled? If not, why. */
static bool address_fit(struct dial *d, int family, const struct in6_addr *address)
{
	const struct policy_network *n = d->e->config->network;
	const struct network_dial dial = {.rule = d->rule,
					  .host = d->host[0] ? d->host : NULL,
					  .family = family,
					  .address = address,
					  .port = d->port,
					  .protocol = d->protocol};
	bool bound;
	const struct network_cidr *by = network_named_by(n, &dial, &bound);
	char text[INET6_ADDRSTRLEN];
	const char *why;

	if (!network_address_public(family, address) && !names_private(by))
		why = by ? "not a public address, and the range of the rule is not one of such"
			 : "not a public address, and no rule has it as `address`";
	/* A literal address has been asked about by the caller. */
	else if (d->host[0] && !network_may_dial(n, &dial))
		why = "the rules do not let it be dialled";
	else if (!names_own(by) && route_is_own(d->e->route, family, address))
		why = by ? "an address of this machine, which a rule has to name by itself"
			 : "an address of this machine, and no rule has it as `address`";
	else
		return true;
	snprintf(d->blocked, sizeof(d->blocked), "%s%s: %s",
		 d->host[0] ? "the name resolves to " : "",
		 inet_ntop(family, address, text, sizeof(text)) ? text : "?", why);
	EVENT_TEXT(d->unfit, text);
	return false;
}

/* ---------------------------------------------------------------- the end */

static void attempt_close(struct attempt *a)
{
	if (a->event)
		event_free(a->event);
	a->event = NULL;
	if (a->fd >= 0)
		a->d->running--;
	close_fd(&a->fd);
}

static void finish(struct dial *d)
{
	d->finished = true;
	for (size_t i = 0; i < 2; i++) {
		resolve_cancel(d->lookups[i]);
		d->lookups[i] = NULL;
	}
	for (size_t i = 0; i < d->nattempts; i++)
		attempt_close(&d->attempts[i]);
	event_del(d->timer);
	/* Never from within the caller's own call. */
	event_active(d->done, EV_TIMEOUT, 0);
}

static void finish_blocked(struct dial *d, const char *why)
{
	d->result.fd = -1;
	d->result.outcome = EGRESS_BLOCKED;
	snprintf(d->result.detail, sizeof(d->result.detail), "%s", why);
	finish(d);
}

static void finish_failed(struct dial *d)
{
	struct dial_result *r = &d->result;
	const char *text = NULL;

	r->fd = -1;
	if (!d->error && d->blocked[0]) {
		EVENT_TEXT(r->address, d->unfit);
		finish_blocked(d, d->blocked);
		return;
	}
	r->outcome = EGRESS_UNREACHABLE;
	if (d->error)
		text = strerrorname_np(d->error);
	else
		/* What IPv4 says is what people know: "has no address" for IPv6 is normal. */
		text = d->found[1].problem ? d->found[1].problem : d->found[0].problem;
	snprintf(r->detail, sizeof(r->detail), "%s", text ? text : "no answer in time");
	finish(d);
}

static void on_done(evutil_socket_t fd, short what, void *arg)
{
	struct dial *d = arg;
	struct dial_result r = d->result;
	dial_cb cb = d->cb;
	void *cb_arg = d->arg;

	(void)fd;
	(void)what;
	d->result.fd = -1; /* the callee's now */
	dial_cancel(d);
	cb(&r, cb_arg);
}

void dial_cancel(struct dial *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < 2; i++)
		resolve_cancel(d->lookups[i]);
	for (size_t i = 0; i < d->nattempts; i++)
		attempt_close(&d->attempts[i]);
	if (d->timer)
		event_free(d->timer);
	if (d->done)
		event_free(d->done);
	close_fd(&d->result.fd);
	free(d);
}

/* ---------------------------------------------------------------- attempts */

static void succeed(struct dial *d, struct attempt *a)
{
	const int on = 1, keepalive_s = 60, interval_s = 15, probes = 4;

	d->result = (struct dial_result){.fd = a->fd, .outcome = EGRESS_ALLOWED};
	inet_ntop(a->family, &a->address, d->result.address, sizeof(d->result.address));
	if (d->protocol != NETWORK_UDP) {
		setsockopt(a->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		/* A peer that is gone without a word is noticed in two minutes. */
		setsockopt(a->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
		setsockopt(a->fd, IPPROTO_TCP, TCP_KEEPIDLE, &keepalive_s, sizeof(keepalive_s));
		setsockopt(a->fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
		setsockopt(a->fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	}
	a->fd = -1;
	d->running--;
	finish(d);
}

static void on_connected(evutil_socket_t fd, short what, void *arg)
{
	struct attempt *a = arg;
	struct dial *d = a->d;
	socklen_t len = sizeof(int);
	int error = 0;

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (!error) {
		succeed(d, a);
		return;
	}
	d->error = error;
	attempt_close(a);
	d->next_us = 0; /* the next one at once */
	advance(d);
}

static socklen_t fill(struct sockaddr_storage *to, int family, const struct in6_addr *address,
		      uint16_t port)
{
	memset(to, 0, sizeof(*to));
	if (family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)to;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, address, sizeof(in->sin_addr));
		return sizeof(*in);
	}

	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	in6->sin6_addr = *address;
	return sizeof(*in6);
}

/* false: it failed at once, and the next may be tried. */
static bool attempt(struct dial *d, int family, const struct in6_addr *address)
{
	struct attempt *a = &d->attempts[d->nattempts++];
	struct sockaddr_storage to;
	socklen_t len = fill(&to, family, address, d->port);

	*a = (struct attempt){.d = d, .family = family, .address = *address};
	a->fd = socket(family,
		       (d->protocol == NETWORK_UDP ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC |
			       SOCK_NONBLOCK,
		       0);
	if (a->fd < 0) {
		d->error = errno;
		return false;
	}
	d->running++;
	if (connect(a->fd, (struct sockaddr *)&to, len) == 0) {
		succeed(d, a);
		return true;
	}
	if (errno == EINPROGRESS) {
		a->event = event_new(d->e->base, a->fd, EV_WRITE, on_connected, a);
		if (a->event && event_add(a->event, NULL) == 0)
			return true;
		errno = ENOMEM;
	}
	d->error = errno;
	attempt_close(a);
	return false;
}

/* The next address to try, checked; the families take turns. */
static bool next_address(struct dial *d, int *ret_family, struct in6_addr *ret)
{
	for (int tried = 0; tried < 2; tried++, d->turn = !d->turn) {
		struct resolve_result *f = &d->found[d->turn];

		while (d->used[d->turn] < f->n) {
			const struct in6_addr *address = &f->address[d->used[d->turn]++];

			if (!address_fit(d, f->family, address))
				continue;
			*ret_family = f->family;
			*ret = *address;
			d->turn = !d->turn;
			return true;
		}
	}
	return false;
}

static void arm(struct dial *d, uint64_t now_us)
{
	uint64_t at_us = d->next_us && d->next_us < d->deadline_us ? d->next_us : d->deadline_us;
	uint64_t wait_us = at_us > now_us ? at_us - now_us : 0;
	struct timeval tv = {.tv_sec = (time_t)(wait_us / 1000000),
			     .tv_usec = (suseconds_t)(wait_us % 1000000)};

	event_add(d->timer, &tv);
}

/* Does what is to be done now, and sets the timer for what comes next. */
static void advance(struct dial *d)
{
	uint64_t now_us = clock_mono_us();
	struct in6_addr address;
	int family;

	if (d->finished || d->e->stopping)
		return;
	if (now_us >= d->deadline_us) {
		if (!d->error && d->running)
			d->error = ETIMEDOUT;
		finish_failed(d);
		return;
	}
	/* IPv4 waits a moment for IPv6. */
	if (!d->answered[0] && !d->resolution_over) {
		if (!d->answered[1] || d->found[1].n == 0)
			goto wait;
		if (!d->next_us) {
			d->next_us = now_us + RESOLUTION_MS * 1000;
			goto wait;
		}
		if (now_us < d->next_us)
			goto wait;
		d->resolution_over = true;
		d->next_us = 0;
	}
	if (d->next_us && now_us < d->next_us && d->running)
		goto wait;
	d->next_us = 0;
	if (now_us < d->hold_us) {
		d->next_us = d->hold_us;
		goto wait;
	}
	if (!still_allowed(d)) {
		finish_blocked(d, "the rules were changed");
		return;
	}
	/* Each connection moves something before it is counted: many would be a way around. */
	if (caps_reached(d->e->caps, d->rule)) {
		finish_blocked(d, caps_quota_detail(d->e->caps, d->rule));
		return;
	}
	while (d->nattempts < ATTEMPTS_MAX && next_address(d, &family, &address)) {
		if (!attempt(d, family, &address))
			continue;
		if (d->finished)
			return;
		d->next_us = now_us + ATTEMPT_MS * 1000;
		break;
	}
	if (!d->running && d->answered[0] && d->answered[1]) {
		finish_failed(d);
		return;
	}
wait:
	if (d->answered[0] && d->answered[1] && !d->running && d->found[0].n + d->found[1].n == 0)
		finish_failed(d);
	else
		arm(d, now_us);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	advance(arg);
}

static void on_resolved(const struct resolve_result *r, void *arg)
{
	struct dial *d = arg;
	int i = r->family == AF_INET;

	d->lookups[i] = NULL;
	d->found[i] = *r;
	d->answered[i] = true;
	/* While dial_start() still asks, it goes on by itself. */
	if (d->timer && evtimer_pending(d->timer, NULL))
		advance(d);
}

struct dial *dial_start(struct egress *e, const struct dial_target *to, dial_cb cb, void *arg)
{
	struct dial *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->e = e;
	d->port = to->port;
	d->rule = to->rule;
	d->protocol = to->protocol;
	d->cb = cb;
	d->arg = arg;
	d->result.fd = -1;
	d->changes = e->changes;
	d->hold_us = clock_mono_us() + caps_pause_us(e->caps, d->rule);
	d->deadline_us = d->hold_us + DEADLINE_MS * 1000ull;
	d->timer = evtimer_new(e->base, on_timer, d);
	d->done = event_new(e->base, -1, 0, on_done, d);
	if (!d->timer || !d->done) {
		dial_cancel(d);
		return NULL;
	}
	if (!to->host) {
		int i = to->family == AF_INET;

		d->family = to->family;
		d->answered[0] = d->answered[1] = true;
		d->found[i] = (struct resolve_result){.family = to->family, .n = 1};
		d->turn = i;
		memcpy(&d->found[i].address[0], to->address, to->family == AF_INET ? 4 : 16);
		advance(d);
		return d;
	}
	snprintf(d->host, sizeof(d->host), "%s", to->host);
	for (int i = 0; i < 2 && !e->stopping; i++)
		if (resolve_start(e->resolver, d->host, i ? AF_INET : AF_INET6, on_resolved, d,
				  &d->lookups[i]) < 0) {
			d->answered[i] = true;
			d->found[i].problem = "too many names are being looked up";
		}
	advance(d);
	return d;
}

struct dial *flow_dial(struct flow *f, dial_cb cb, void *arg)
{
	struct dial_target to = {
		.host = f->host[0] ? f->host : NULL,
		.family = f->family,
		.address = &f->address,
		.port = f->port,
		.rule = f->rule,
		.protocol = f->protocol,
	};

	return dial_start(f->e, &to, cb, arg);
}
