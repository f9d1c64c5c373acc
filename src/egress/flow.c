/* Flows: see flow.h. Runs in the broker. What a flow holds of the box (names, ports) was checked by
 * the door it came in by; how many there are is bounded here. */
#include "egress/flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "egress/cap.h"
#include "egress/linger.h"
#include "egress/synthetic.h"

#define OPENED_US	    10000000 /* open for longer: told while it goes on */
/* Of a flow, on the average: two sockets, and while it is dialled a few more. */
#define DESCRIPTORS	    3
/* All else: the box's sockets, pipes (relay.c), lingering connections, the resolver's. */
#define DESCRIPTORS_OF_OURS 720

struct flows {
	struct egress *e;
	TAILQ_HEAD(, flow) all;
	size_t n, max;
	struct event *timer;
};

static void tell(struct flow *f, enum egress_outcome outcome, const char *detail)
{
	struct egress_event ev = {
		.outcome = outcome,
		.what = f->door == FLOW_INBOUND ? EGRESS_INBOUND : EGRESS_CONNECTION,
		.rule = f->rule,
		.port = f->port,
		.source_port = f->source_port,
		.protocol = (uint8_t)f->protocol,
		.family = f->source_family,
		.client = f->client_inode,
		/* Out of the box, that is; from client to upstream in the flow. */
		.bytes_out = f->door == FLOW_INBOUND ? f->bytes_in : f->bytes_out,
		.bytes_in = f->door == FLOW_INBOUND ? f->bytes_out : f->bytes_in,
		.duration_us = clock_mono_us() - f->started_us,
		.cut = f->e->cutting && outcome != EGRESS_BLOCKED,
	};

	EVENT_TEXT(ev.host, f->host);
	EVENT_TEXT(ev.sni, f->sni);
	EVENT_TEXT(ev.method, f->method);
	EVENT_TEXT(ev.path, f->path);
	ev.unfit = outcome == EGRESS_BLOCKED && f->unfit[0];
	if (f->dialled[0] || ev.unfit)
		EVENT_TEXT(ev.address, ev.unfit ? f->unfit : f->dialled);
	else if (!f->host[0] && f->family)
		inet_ntop(f->family, &f->address, ev.address, sizeof(ev.address));
	EVENT_TEXT(ev.detail, detail);
	event_tell(f->e, &ev);
}

/* While there are flows; an idle box costs no wake-ups. */
static void wake(struct flows *v)
{
	const struct timeval later = {.tv_sec = 1};

	if (v->n && !evtimer_pending(v->timer, NULL))
		event_add(v->timer, &later);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct flows *v = arg;
	uint64_t now_us = clock_mono_us();
	struct flow *f;

	(void)fd;
	(void)what;
	/* The oldest come first. */
	TAILQ_FOREACH(f, &v->all, entry)
	{
		if (now_us - f->started_us < OPENED_US)
			break;
		if (f->opened_told || f->quiet || !f->dialled[0])
			continue;
		f->opened_told = true;
		tell(f, EGRESS_OPENED, NULL);
	}
	wake(v);
}

int flows_new(struct egress *e, struct flows **ret)
{
	struct flows *v = calloc(1, sizeof(*v));
	struct rlimit files;

	if (!v)
		return -ENOMEM;
	v->e = e;
	TAILQ_INIT(&v->all);
	v->max = FLOW_MAX;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		rlim_t left = files.rlim_cur > DESCRIPTORS_OF_OURS
				      ? files.rlim_cur - DESCRIPTORS_OF_OURS
				      : files.rlim_cur / 8;

		if (left / DESCRIPTORS < v->max)
			v->max = left / DESCRIPTORS;
	}
	v->timer = evtimer_new(e->base, on_timer, v);
	if (!v->timer) {
		flows_free(v);
		return -ENOMEM;
	}
	*ret = v;
	return 0;
}

void flows_free(struct flows *v)
{
	if (!v)
		return;
	if (v->timer)
		event_free(v->timer);
	free(v);
}

struct flow *flow_new(struct egress *e, int client, enum flow_door door)
{
	struct flows *v = e->flows;
	uint64_t connections = e->config->network->connections;
	struct flow *f;

	if (v->n >= v->max || (connections && v->n >= connections))
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->e = e;
	f->client = client;
	f->upstream = -1;
	f->door = door;
	f->rule = -1;
	f->started_us = clock_mono_us();
	TAILQ_INSERT_TAIL(&v->all, f, entry);
	v->n++;
	e->activity++;
	wake(v);
	return f;
}

void flow_end(struct flow *f, enum egress_outcome outcome, const char *detail)
{
	struct flows *v = f->e->flows;

	if (!f->quiet)
		tell(f, outcome, detail);
	TAILQ_REMOVE(&v->all, f, entry);
	v->n--;
	synthetic_release(f->name);
	close_fd(&f->upstream);
	if (f->client >= 0 && outcome != EGRESS_ALLOWED)
		linger_reset(take_fd(&f->client));
	close_fd(&f->client);
	free(f);
}

void flow_refuse(struct flow *f, int rule, const char *detail)
{
	f->rule = rule;
	flow_end(f, EGRESS_BLOCKED, detail);
}

struct network_answer flow_ask(const struct flow *f, enum network_protocol protocol)
{
	const struct network_question ask = {
		.host = f->host[0] ? f->host : NULL,
		.family = f->host[0] ? 0 : f->family,
		.address = f->host[0] ? NULL : &f->address,
		.port = f->port,
		.protocol = protocol,
	};

	return network_ask(f->e->config->network, &ask);
}

bool flow_any_allowed(const struct flow *f, struct network_answer *ret)
{
	static const enum network_protocol all[] = {NETWORK_TCP, NETWORK_TLS, NETWORK_HTTP};
	struct network_answer last = {.rule = -1};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct network_answer said = flow_ask(f, all[i]);

		if (said.allowed) {
			*ret = said;
			return true;
		}
		if (said.rule >= 0)
			last = said;
	}
	*ret = last;
	return false;
}

bool flow_covered(struct flow *f)
{
	struct network_answer said;

	/* What is published is so for the whole run. */
	if (f->door == FLOW_INBOUND)
		return true;
	said = flow_ask(f, f->protocol);
	f->rule = said.rule;
	return said.allowed;
}

int flow_account(struct flow *f, uint64_t out, uint64_t in)
{
	f->bytes_out += out;
	f->bytes_in += in;
	return caps_account(f->e->caps, f->rule, out + in);
}

const char *flow_quota_detail(const struct flow *f)
{
	return caps_quota_detail(f->e->caps, f->rule);
}

bool flow_quota_reached(const struct flow *f)
{
	return caps_reached(f->e->caps, f->rule);
}

uint64_t flow_pause_us(const struct flow *f)
{
	return caps_pause_us(f->e->caps, f->rule);
}

static void drop(struct flow *f)
{
	if (f->carrier && f->carrier->drop)
		f->carrier->drop(f);
	f->carrier = NULL;
}

/* A name may still be allowed, but not where it led. */
static bool reached_is_allowed(const struct flow *f)
{
	int family = strchr(f->dialled, ':') ? AF_INET6 : AF_INET;
	struct in6_addr address;

	if (!f->host[0] || f->door == FLOW_FORWARD || f->door == FLOW_INBOUND ||
	    inet_pton(family, f->dialled, &address) != 1)
		return true;
	return network_may_dial(f->e->config->network,
				&(struct network_dial){.rule = f->rule,
						       .host = f->host,
						       .family = family,
						       .address = &address,
						       .port = f->port,
						       .protocol = f->protocol});
}

void flows_recheck(struct egress *e)
{
	struct flow *f, *next;

	for (f = TAILQ_FIRST(&e->flows->all); f; f = next) {
		next = TAILQ_NEXT(f, entry);
		if (f->carrier && f->carrier->covered ? f->carrier->covered(f) : flow_covered(f)) {
			if (reached_is_allowed(f))
				continue;
			EVENT_TEXT(f->unfit, f->dialled);
		}
		drop(f);
		flow_end(f, EGRESS_BLOCKED, "the rules were changed");
	}
}

/* What nobody has decided about yet may be what no rule allows: that was tried all the same. */
static bool is_refused(struct flow *f, struct network_answer *ret)
{
	if (f->dialled[0] || f->door == FLOW_INBOUND || f->door == FLOW_UDP ||
	    (!f->host[0] && !f->family))
		return false;
	return !flow_any_allowed(f, ret);
}

void flows_stop(struct egress *e)
{
	e->cutting = true;
	while (!TAILQ_EMPTY(&e->flows->all)) {
		struct flow *f = TAILQ_FIRST(&e->flows->all);
		struct network_answer said;

		drop(f);
		if (is_refused(f, &said))
			flow_refuse(f, said.rule, NULL);
		else
			flow_end(f, f->dialled[0] ? EGRESS_ALLOWED : EGRESS_UNREACHABLE, NULL);
	}
}
