/* Events to the supervisor: see event.h.
 *
 * Runs in the broker. Names, addresses and paths in the events come from the box; they are copied,
 * bounded and compared, and it is the supervisor that checks and escapes them. Nothing is allocated
 * after the start: the table of kinds has a fixed size, and what does not fit it is summed up under
 * fewer words. */
#include "egress/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "egress/egress.h"

#define KINDS	     512
#define FLUSH_MS     250
#define FLUSH_MAX_MS 4000 /* a kind that goes on is told ever more seldom */
#define SINGLES	     10	  /* of one kind, told singly before counting starts */
#define ALL_BURST    500  /* of all kinds together, likewise */
#define ALL_PER_S    500
#define FORGET_US    2000000 /* a kind that is quiet for so long may be told singly again */
#define FLUSH_END_S  2	     /* waiting for a supervisor that does not read, at the end */

struct kind {
	struct egress_event ev; /* count: not told yet */
	unsigned singles;
	uint64_t last_us;
	unsigned wait_ms; /* between two counts of it */
	uint64_t due_us;
};

struct events {
	struct egress *e;
	struct kind kinds[KINDS];
	bool taken[KINDS]; /* apart: what is looked through is not the kinds' own pages */
	size_t used;
	uint64_t budget_milli; /* of single events, thousandths */
	uint64_t budget_us;    /* when it was filled up */
	struct event *timer, *writable;
	struct egress_message message; /* too large for the stack of a callback that nests */
};

void event_text(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text ? text : "");
}

static uint32_t hash(uint32_t h, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

static uint32_t kind_hash(const struct egress_event *ev)
{
	uint32_t h = 2166136261u;

	h = hash(h, &ev->outcome, sizeof(ev->outcome));
	h = hash(h, &ev->what, sizeof(ev->what));
	h = hash(h, &ev->rule, sizeof(ev->rule));
	h = hash(h, &ev->port, sizeof(ev->port));
	h = hash(h, &ev->protocol, sizeof(ev->protocol));
	h = hash(h, &ev->query, sizeof(ev->query));
	h = hash(h, &ev->cut, sizeof(ev->cut));
	h = hash(h, ev->host, strlen(ev->host));
	h = hash(h, ev->address, strlen(ev->address));
	h = hash(h, ev->method, strlen(ev->method));
	h = hash(h, ev->path, strlen(ev->path));
	if (ev->what == EGRESS_AGENT_USE)
		h = hash(h, ev->sni, strlen(ev->sni));
	return hash(h, ev->detail, strlen(ev->detail));
}

static bool same_kind(const struct egress_event *a, const struct egress_event *b)
{
	return a->outcome == b->outcome && a->what == b->what && a->rule == b->rule &&
	       a->port == b->port && a->protocol == b->protocol && a->query == b->query &&
	       a->cut == b->cut && strcmp(a->host, b->host) == 0 &&
	       strcmp(a->address, b->address) == 0 && strcmp(a->method, b->method) == 0 &&
	       strcmp(a->path, b->path) == 0 && strcmp(a->detail, b->detail) == 0 &&
	       (a->what != EGRESS_AGENT_USE || strcmp(a->sni, b->sni) == 0);
}

/* The place of this kind: one that is there, or a free one if the table may grow; or NULL. */
static struct kind *kind_find(struct events *v, const struct egress_event *ev, size_t limit)
{
	uint32_t at = kind_hash(ev) % KINDS;

	for (size_t i = 0; i < KINDS; i++, at = (at + 1) % KINDS) {
		struct kind *k = &v->kinds[at];

		if (v->taken[at] && same_kind(&k->ev, ev))
			return k;
		if (v->taken[at])
			continue;
		if (v->used >= limit)
			return NULL;
		v->used++;
		v->taken[at] = true;
		*k = (struct kind){.ev = *ev};
		k->ev.count = 0;
		k->ev.bytes_in = k->ev.bytes_out = 0;
		return k;
	}
	return NULL;
}

static void count(struct kind *k, const struct egress_event *ev)
{
	k->ev.count += ev->count;
	k->ev.bytes_in += ev->bytes_in;
	k->ev.bytes_out += ev->bytes_out;
	k->ev.source_port = ev->source_port;
	k->ev.family = ev->family;
	k->ev.client = ev->client;
	k->ev.duration_us = ev->duration_us;
	k->ev.status = ev->status;
}

/* 0, or -EAGAIN: the supervisor is behind. */
static int put(struct events *v, const struct egress_event *ev)
{
	struct egress_message *m = &v->message;

	*m = (struct egress_message){.kind = EGRESS_EVENT, .event = *ev};
	if (send(v->e->control, m, sizeof(*m), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*m))
		return 0;
	return errno == EAGAIN || errno == ENOBUFS ? -EAGAIN : -errno;
}

static bool budget_take(struct events *v, uint64_t now_us)
{
	uint64_t passed = now_us - v->budget_us;

	if (passed > 1000000)
		passed = 1000000;
	v->budget_milli += passed * ALL_PER_S / 1000;
	if (v->budget_milli > ALL_BURST * 1000)
		v->budget_milli = ALL_BURST * 1000;
	v->budget_us = now_us;
	if (v->budget_milli < 1000)
		return false;
	v->budget_milli -= 1000;
	return true;
}

/* While there is any kind in the table; an idle box costs no wake-ups. */
static void wake(struct events *v)
{
	const struct timeval later = {.tv_usec = FLUSH_MS * 1000};

	if (!evtimer_pending(v->timer, NULL))
		event_add(v->timer, &later);
}

/* Who waits for a server of the box to listen tries again and again: Jupyter's clients do, five of
 * them. */
static unsigned singles_of(const struct egress_event *ev)
{
	return ev->what == EGRESS_INBOUND && ev->outcome == EGRESS_UNREACHABLE ? 1 : SINGLES;
}

void event_tell(struct egress *e, const struct egress_event *told)
{
	struct events *v = e->events;
	struct egress_event ev = *told;
	uint64_t now_us = clock_mono_us();
	struct kind *k;

	e->activity++;
	if (!ev.count)
		ev.count = 1;
	/* The table is kept a quarter free of kinds in full detail, so that the coarser ones find
	 * room. */
	k = kind_find(v, &ev, KINDS / 4 * 3);
	if (!k) {
		ev.address[0] = ev.path[0] = ev.sni[0] = '\0';
		ev.unfit = 0;
		k = kind_find(v, &ev, KINDS / 8 * 7);
	}
	if (!k) {
		ev.host[0] = ev.method[0] = ev.detail[0] = '\0';
		ev.port = ev.query = 0;
		ev.rule = -1;
		k = kind_find(v, &ev, KINDS);
	}
	if (!k) /* can't be: there are fewer of these than an eighth of the table */
		return;
	k->last_us = now_us;
	wake(v);
	if (k->ev.count == 0 && k->singles < singles_of(&ev) && budget_take(v, now_us)) {
		k->singles++;
		if (put(v, &ev) == 0)
			return;
	}
	count(k, &ev);
}

/* Tells what was counted and is due, or all; false: the supervisor is behind. */
static bool tell_counted(struct events *v, bool all)
{
	uint64_t now_us = clock_mono_us();

	for (size_t i = 0; i < KINDS; i++) {
		struct kind *k = &v->kinds[i];

		if (!v->taken[i] || !k->ev.count || (!all && now_us < k->due_us))
			continue;
		if (put(v, &k->ev) < 0)
			return false;
		k->ev.count = k->ev.bytes_in = k->ev.bytes_out = 0;
		k->wait_ms = k->wait_ms ? 2 * k->wait_ms : FLUSH_MS;
		if (k->wait_ms > FLUSH_MAX_MS)
			k->wait_ms = FLUSH_MAX_MS;
		k->due_us = now_us + k->wait_ms * 1000ULL;
	}
	return true;
}

/* Forgets the kinds that are quiet. The table is open addressing, so it is made anew. */
static void forget_quiet(struct events *v)
{
	uint64_t now_us = clock_mono_us();
	size_t kept = 0;

	for (size_t i = 0; i < KINDS; i++) {
		struct kind *k = &v->kinds[i];

		if (v->taken[i] && (k->ev.count || now_us - k->last_us < FORGET_US))
			kept++;
	}
	if (kept == v->used)
		return;

	struct kind *old = kept ? calloc(kept, sizeof(*old)) : NULL;
	size_t n = 0;

	if (kept && !old)
		return; /* next time */
	for (size_t i = 0; i < KINDS; i++)
		if (v->taken[i] && n < kept &&
		    (v->kinds[i].ev.count || now_us - v->kinds[i].last_us < FORGET_US))
			old[n++] = v->kinds[i];
	memset(v->taken, 0, sizeof(v->taken));
	v->used = 0;
	for (size_t i = 0; i < n; i++) {
		struct kind *to = kind_find(v, &old[i].ev, KINDS);

		if (to)
			*to = old[i];
	}
	free(old);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct events *v = arg;

	(void)fd;
	(void)what;
	if (!tell_counted(v, false))
		event_add(v->writable, NULL);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct events *v = arg;

	(void)fd;
	(void)what;
	if (!tell_counted(v, false))
		event_add(v->writable, NULL);
	forget_quiet(v);
	if (v->used)
		wake(v);
}

int events_new(struct egress *e, struct events **ret)
{
	struct events *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	v->e = e;
	v->budget_milli = ALL_BURST * 1000;
	v->budget_us = clock_mono_us();
	v->timer = evtimer_new(e->base, on_timer, v);
	v->writable = event_new(e->base, e->control, EV_WRITE, on_writable, v);
	if (!v->timer || !v->writable) {
		events_free(v);
		return -ENOMEM;
	}
	*ret = v;
	return 0;
}

void events_free(struct events *v)
{
	if (!v)
		return;
	if (v->timer)
		event_free(v->timer);
	if (v->writable)
		event_free(v->writable);
	free(v);
}

void events_flush(struct egress *e)
{
	uint64_t until_us = clock_mono_us() + FLUSH_END_S * 1000000ull;

	while (!tell_counted(e->events, true)) {
		struct pollfd p = {.fd = e->control, .events = POLLOUT};
		uint64_t now_us = clock_mono_us();

		if (now_us >= until_us || poll(&p, 1, (int)((until_us - now_us) / 1000) + 1) <= 0)
			return;
		if (p.revents & (POLLHUP | POLLERR))
			return;
	}
}
