/* pale-egress: the broker between a box and the network.
 *
 * A program of its own, started by the supervisor for each box whose policy has network rules, with
 * one descriptor, 0: the control socket (wire.h). It runs in the host's network namespace, but all
 * that it listens on was made in the box's. It reads the host's resolver files, makes what needs
 * privilege, locks itself in (lock.c), and only then looks at the first byte of the box, all of
 * which are hostile. It ends when the supervisor says so, or is gone. */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sanitized.h"
#include "egress/accept.h"
#include "egress/agent.h"
#include "egress/cap.h"
#include "egress/dns.h"
#include "egress/flow.h"
#include "egress/http/http.h"
#include "egress/inbound.h"
#include "egress/linger.h"
#include "egress/lock.h"
#include "egress/proxy.h"
#include "egress/relay.h"
#include "egress/resolve.h"
#include "egress/route.h"
#include "egress/synthetic.h"
#include "egress/udp.h"

#define STAGE	 "egress"
#define CONTROL	 0
#define DRAIN_MS 100 /* at most; the caller waits for the end */

static int say(enum egress_kind kind, const char *text)
{
	struct egress_message m = {.kind = kind};

	event_text(m.text, sizeof(m.text), text);
	return fd_send(CONTROL, &m, sizeof(m), NULL, 0);
}

/* ---------------------------------------------------------------- before the lock */

/* Nothing of what was inherited is needed. */
static int clean_up(struct pale_err *err)
{
	static const int ignored[] = {SIGPIPE, SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGTSTP};

	if (close_range(3, ~0u, 0) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot close descriptors");
	close(STDOUT_FILENO);
	if (open("/dev/null", O_RDWR) != STDOUT_FILENO)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open /dev/null");
	if (!SANITIZED && dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot open /dev/null");
	/* What a terminal sends is for the supervisor, which then says how this ends. */
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	return chdir("/") < 0 ? err_set(err, PALE_E_SYSTEM, STAGE, errno, "cannot go to /") : 0;
}

/* Waits for one message of this kind. Its descriptors are the caller's. */
static int expect(enum egress_kind kind, int *fds, size_t wanted, struct pale_err *err)
{
	struct egress_message m;
	size_t n = 0;
	ssize_t r = fd_recv(CONTROL, &m, sizeof(m), fds, wanted, &n);

	if (r == 0)
		exit(0); /* the supervisor has changed its mind */
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, (int)-r,
			       "cannot read the control socket");
	if (r >= (ssize_t)offsetof(struct egress_message, text) && m.kind == (uint32_t)kind &&
	    n == wanted)
		return 0;
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
	return err_set(err, PALE_E_SYSTEM, STAGE, 0, "unexpected message %u with %zu descriptors",
		       r >= (ssize_t)sizeof(m.kind) ? m.kind : 0, n);
}

static int configure(struct egress *e, struct pale_err *err)
{
	_cleanup_close_ int memfd = -1;
	int r = expect(EGRESS_CONFIG, &memfd, 1, err);

	if (r == 0)
		r = config_read(memfd, &e->config, err);
	return r == 0 ? config_read_host(e->config, err) : r;
}

/* What needs files, or what the filter will refuse. */
static int prepare(struct egress *e, struct pale_err *err)
{
	struct event_config *c = event_config_new();

	if (c)
		event_config_set_flag(c, EVENT_BASE_FLAG_NOLOCK);
	e->base = c ? event_base_new_with_config(c) : NULL;
	if (c)
		event_config_free(c);
	if (!e->base)
		return err_nomem(err, STAGE);
	e->route = route_open();
	if (e->route < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -e->route, "cannot open rtnetlink");
	if (resolver_new(e->base, e->config->resolv_conf, e->config->hosts, &e->resolver, err) < 0)
		return -(int)err->code;
	if (events_new(e, &e->events) < 0 || synthetic_new(&e->synthetic) < 0 ||
	    caps_new(e->config->network, &e->caps) < 0 || agent_new(e, &e->agent) < 0)
		return err_nomem(err, STAGE);
	return http_new(e, &e->http, err);
}

/* To their places, which the filter knows. */
static int take_sockets(struct egress *e, struct pale_err *err)
{
	int fds[EGRESS_NSOCKETS];
	int r = expect(EGRESS_SOCKETS, fds, EGRESS_NSOCKETS, err);

	for (int i = 0; r == 0 && i < EGRESS_NSOCKETS; i++) {
		e->sockets[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, LOCK_SOCKETS_AT + i);
		if (e->sockets[i] != LOCK_SOCKETS_AT + i ||
		    fd_set_nonblock(e->sockets[i], true) < 0)
			return err_set(err, PALE_E_SYSTEM, STAGE, errno,
				       "cannot take the box's sockets");
	}
	for (int i = 0; r == 0 && i < EGRESS_NSOCKETS; i++)
		close(fds[i]);
	return r;
}

static int open_doors(struct egress *e, struct pale_err *err)
{
	if (udp_new(e, &e->udp) < 0 || dns_new(e, &e->dns) < 0 || accept_new(e, &e->accept) < 0 ||
	    proxy_new(e, &e->proxy) < 0 || inbound_new(e, &e->inbound) < 0)
		return err_nomem(err, STAGE);
	return 0;
}

/* ---------------------------------------------------------------- the loop */

static int change_rules(struct egress *e, int memfd, struct pale_err *err)
{
	struct config *c = e->config;
	struct policy *before = c->policy, *now = NULL;
	int r = config_read_rules(memfd, &now, err);

	if (r < 0)
		return r;
	/* Secrets came with the configuration. */
	if (now->network.nsecrets != before->network.nsecrets) {
		policy_free(now);
		return err_set(err, PALE_E_POLICY, STAGE, 0,
			       "secrets cannot be added to, or taken from, a running box");
	}
	/* What was counted names rules by what they are called until now. */
	events_flush(e);
	c->policy = now;
	c->network = &now->network;
	r = http_rules(e, err);
	if (r == 0 && caps_rules(e->caps, &before->network, c->network) < 0)
		r = err_nomem(err, STAGE);
	if (r < 0) {
		c->policy = before;
		c->network = &before->network;
		policy_free(now);
		return r;
	}
	e->changes++;
	(void)!say(EGRESS_TAKEN, NULL);
	flows_recheck(e);
	policy_free(before);
	return 0;
}

/* What came with a message; each is taken out by who takes it over. */
struct passed {
	int fds[EGRESS_LISTENERS];
	size_t n;
};

static void passed_done(struct passed *p)
{
	while (p->n)
		close_fd(&p->fds[--p->n]);
}

static int hear(struct egress *e, const struct egress_message *m, struct passed *passed)
{
	struct pale_err err;
	size_t n = passed->n;

	switch (m->kind) {
	case EGRESS_RULES:
		/* Rules that can't be taken over may be tighter ones: nothing goes on by the old.
		 */
		if (change_rules(e, n ? passed->fds[0] : -1, &err) < 0) {
			(void)!say(EGRESS_FAILED, err.message);
			event_base_loopbreak(e->base);
		} else {
			(void)!say(EGRESS_READY, NULL);
		}
		return 0;
	case EGRESS_PUBLISH:
		passed->n = 0;
		if (inbound_listen(e->inbound, m->value, passed->fds, n) == 0)
			return 0;
		(void)!say(EGRESS_FAILED, "cannot listen for a published port");
		event_base_loopbreak(e->base);
		return 0;
	case EGRESS_AGENT:
		if (n != 2)
			return -EPROTO;
		passed->n = 0;
		if (agent_listen(e->agent, passed->fds[0], passed->fds[1]) == 0)
			return 0;
		(void)!say(EGRESS_FAILED, "cannot listen for the ssh agent");
		event_base_loopbreak(e->base);
		return 0;
	case EGRESS_CONNECTED:
		inbound_connected(e->inbound, m->value, m->connect.error,
				  n ? take_fd(&passed->fds[0]) : -1);
		return 0;
	case EGRESS_STOP:
		e->stopping = true;
		event_base_loopbreak(e->base);
		return 0;
	default: return -EPROTO;
	}
}

static void on_control(evutil_socket_t fd, short what, void *arg)
{
	_cleanup_(passed_done) struct passed passed = {.n = 0};
	struct egress *e = arg;
	struct egress_message m = {.kind = 0};
	ssize_t r = fd_recv(fd, &m, sizeof(m), passed.fds, EGRESS_LISTENERS, &passed.n);

	(void)what;
	if (r == -EAGAIN)
		return;
	if (r < (ssize_t)offsetof(struct egress_message, text))
		_exit(0); /* the supervisor is gone, and nobody is left to be told anything */
	if (hear(e, &m, &passed) < 0)
		_exit(1);
}

/* What the box did just before its end is still in its sockets: connections that nobody has taken,
 * names, last bytes, and that it closed them. It is gone, so there is no more to come than what is
 * there; a look at the loop that finds nothing new twice has found all. */
static void drain(struct egress *e)
{
	uint64_t until_us = clock_mono_us() + DRAIN_MS * 1000, before;

	for (int quiet = 0; quiet < 2 && clock_mono_us() < until_us;) {
		before = e->activity;
		if (event_base_loop(e->base, EVLOOP_NONBLOCK) != 0)
			return;
		quiet = e->activity == before ? quiet + 1 : 0;
	}
}

static void stop(struct egress *e)
{
	if (e->stopping)
		drain(e);
	flows_stop(e);
	events_flush(e);
	linger_stop(e);
	relay_stop();
	dns_free(e->dns);
	accept_free(e->accept);
	proxy_free(e->proxy);
	inbound_free(e->inbound);
	agent_free(e->agent);
	udp_free(e->udp);
	http_free(e->http);
	flows_free(e->flows);
	resolver_free(e->resolver);
	events_free(e->events);
	caps_free(e->caps);
	synthetic_free(e->synthetic);
	config_free(e->config); /* wipes the secrets */
	event_base_free(e->base);
}

static int start(struct egress *e, struct pale_err *err)
{
	int r = clean_up(err);

	if (r == 0)
		r = configure(e, err);
	if (r == 0)
		r = prepare(e, err);
	if (r == 0)
		r = lock_privileges(e->config, err);
	/* How many flows there can be follows from a limit that can't be asked for later. */
	if (r == 0 && flows_new(e, &e->flows) < 0)
		r = err_nomem(err, STAGE);
	if (r == 0)
		r = take_sockets(e, err);
	if (r == 0)
		r = lock_calls(err);
	return r == 0 ? open_doors(e, err) : r;
}

int main(void)
{
	struct egress e = {.control = CONTROL, .route = -1};
	struct event *control;
	struct pale_err err;

	prctl(PR_SET_NAME, "pale-egress");
	/* Before the first secret is read, and again when the ids have changed (lock.c). */
	prctl(PR_SET_DUMPABLE, 0);
	for (size_t i = 0; i < ARRAY_SIZE(e.sockets); i++)
		e.sockets[i] = -1;
	if (start(&e, &err) < 0) {
		(void)!say(EGRESS_FAILED, err.message);
		return 1;
	}
	control = event_new(e.base, CONTROL, EV_READ | EV_PERSIST, on_control, &e);
	if (!control || event_add(control, NULL) < 0 || say(EGRESS_READY, NULL) < 0)
		return 1;
	event_base_dispatch(e.base);
	event_free(control);
	stop(&e);
	/* All is said: the supervisor need not wait until the kernel has taken our memory down. */
	close(CONTROL);
	_exit(0); /* nothing that would run at exit is allowed any more */
}
