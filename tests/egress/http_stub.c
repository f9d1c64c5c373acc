/* The rest of the broker, as the HTTP engine sees it: see http_stub.h. */
#include "http_stub.h"

#include <string.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/fd.h"

int (*stub_dial)(const struct flow *f, const char *host);
void (*stub_event)(const struct egress_event *ev);
size_t stub_nflows;
static TAILQ_HEAD(, flow) flows = TAILQ_HEAD_INITIALIZER(flows);

void event_text(char *to, size_t size, const char *text)
{
	size_t len = strnlen(text, size - 1);

	memmove(to, text, len);
	to[len] = '\0';
}

void event_tell(struct egress *e, const struct egress_event *ev)
{
	(void)e;
	if (stub_event)
		stub_event(ev);
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
	stub_nflows++;
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
	if (!f->quiet)
		event_tell(f->e, &ev);
	TAILQ_REMOVE(&flows, f, entry);
	stub_nflows--;
	close_fd(&f->client);
	free(f);
}

struct network_answer flow_ask(const struct flow *f, enum network_protocol protocol)
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

static struct dial *dial_new(struct egress *e, int fd, dial_cb cb, void *arg)
{
	struct dial *d = calloc(1, sizeof(*d));
	struct timeval now = {0};

	if (!d) {
		close_fd(&fd);
		return NULL;
	}
	d->cb = cb;
	d->arg = arg;
	d->result.fd = fd;
	if (fd >= 0) {
		EVENT_TEXT(d->result.address, "127.0.0.1");
	} else {
		d->result.outcome = EGRESS_UNREACHABLE;
		EVENT_TEXT(d->result.detail, "ECONNREFUSED");
	}
	d->ev = event_new(e->base, -1, 0, on_dialled, d);
	event_add(d->ev, &now);
	return d;
}

struct dial *dial_start(struct egress *e, const struct dial_target *to, dial_cb cb, void *arg)
{
	return dial_new(e, stub_dial(NULL, to->host), cb, arg);
}

struct dial *flow_dial(struct flow *f, dial_cb cb, void *arg)
{
	return dial_new(f->e, stub_dial(f, f->host), cb, arg);
}

void dial_cancel(struct dial *d)
{
	if (!d)
		return;
	close_fd(&d->result.fd);
	event_free(d->ev);
	free(d);
}

static void end(struct flow *f, enum egress_outcome outcome, const char *detail)
{
	if (f->carrier)
		f->carrier->drop(f);
	flow_end(f, outcome, detail);
}

void stub_recheck(void)
{
	struct flow *f, *next;

	for (f = TAILQ_FIRST(&flows); f; f = next) {
		next = TAILQ_NEXT(f, entry);
		if (!f->carrier->covered(f))
			end(f, EGRESS_BLOCKED, "the rules have changed");
	}
}

void stub_end_all(void)
{
	while (!TAILQ_EMPTY(&flows))
		end(TAILQ_FIRST(&flows), EGRESS_ALLOWED, "the end");
}

void flow_refuse(struct flow *f, int rule, const char *detail)
{
	f->rule = rule;
	flow_end(f, EGRESS_BLOCKED, detail);
}
