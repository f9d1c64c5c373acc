/* The rules of a running box: see live.h. In the supervisor. What is asked for was read by
 * control.c and is checked here as a policy; what the broker says is hostile. The order of a change
 * is the point: it is on record before it is in force, and whoever asked hears of it after. */
#include "supervise/live.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>

#include "audit/audit.h"
#include "base/fd.h"
#include "egress/config.h"

#define STAGE	      "supervise"
#define ANSWER_WITHIN 10 /* seconds: the broker's */

struct counters {
	uint64_t connections, requests, blocked, unreachable, bytes_out, bytes_in;
};

struct live {
	struct live_ops ops;
	void *arg;
	struct network_rules rules;
	struct counters *counters; /* as many as there are rules */
	uint64_t unmatched;	   /* blocked, and named by no rule */
	bool intercepts;	   /* the box has what it needs for rules that look into TLS */
	struct event *timer;

	bool busy; /* the broker has been sent: */
	struct network_rules coming;
	json_t *result; /* for done() */
	live_done *done;
	void *done_arg;
};

static void forget(struct live *l)
{
	network_rules_done(&l->coming);
	json_decref(l->result);
	l->result = NULL;
	l->done = NULL;
	l->busy = false;
	event_del(l->timer);
}

static void on_no_answer(evutil_socket_t fd, short what, void *arg)
{
	struct live *l = arg;
	live_done *done = l->done;
	struct pale_err err;

	(void)fd;
	(void)what;
	err_set(&err, PALE_E_SYSTEM, STAGE, 0,
		"the egress broker did not answer to changed rules within %d s, so that it is not "
		"known which are in force",
		ANSWER_WITHIN);
	forget(l);
	l->ops.lost(l->arg, &err);
	if (done)
		done(l->done_arg, NULL, &err);
}

int live_new(struct event_base *base, const struct policy_network *network, bool intercepts,
	     const struct live_ops *ops, void *arg, struct live **ret, struct pale_err *err)
{
	struct live *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_nomem(err, STAGE);
	l->ops = *ops;
	l->arg = arg;
	l->intercepts = intercepts;
	l->timer = event_new(base, -1, 0, on_no_answer, l);
	l->counters = calloc(network->nrules + 1, sizeof(*l->counters));
	r = network_rules_init(&l->rules, network, err);
	if (r == 0 && (!l->timer || !l->counters))
		r = err_nomem(err, STAGE);
	if (r < 0)
		live_free(l);
	else
		*ret = l;
	return r;
}

void live_free(struct live *l)
{
	if (!l)
		return;
	if (l->timer) {
		forget(l);
		event_free(l->timer);
	}
	network_rules_done(&l->rules);
	free(l->counters);
	free(l);
}

const struct policy_network *live_network(const struct live *l)
{
	return &l->rules.policy->network;
}

bool live_busy(const struct live *l)
{
	return l->busy;
}

/* ---- a change ---- */

/* What needs more than rules: a certificate that the programs inside trust was made, or not, before
 * the code started. */
static int check_possible(const struct live *l, const struct policy_network *n,
			  struct pale_err *err)
{
	for (size_t i = 0; i < n->nrules && !l->intercepts; i++) {
		char text[NETWORK_RULE_TEXT];

		if (!network_rule_intercepts(&n->rules[i]))
			continue;
		return err_set(
			err, PALE_E_HOST, STAGE, 0,
			"%s: methods, paths and `intercept` of TLS need a certificate that the "
			"programs inside trust, and this box was started without: allow the host "
			"as "
			"a whole, or run again with such a rule",
			network_rule_text(&n->rules[i], text));
	}
	return 0;
}

/* See egress/config.h. */
static int rules_memfd(const struct policy *p, struct pale_err *err)
{
	_cleanup_close_ int fd = memfd_create("pale-rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	_cleanup_free_ char *network = NULL, *places = NULL, *text = NULL;
	int n, r = fd < 0 ? -errno : 0;

	if (r == 0) {
		r = policy_network_to_json(p, &network, err);
		if (r == 0)
			r = policy_network_places(&p->network, &places, err);
		if (r < 0)
			return r;
		n = asprintf(&text, "{\"network\":%s,\"places\":%s}", network, places);
		if (n < 0) {
			text = NULL;
			return err_nomem(err, STAGE);
		}
		if (n > (int)CONFIG_MAX_BYTES)
			return err_set(err, PALE_E_POLICY, STAGE, 0,
				       "the rules are too long altogether");
		r = fd_write_all(fd, text, (size_t)n);
	}
	if (r == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, PALE_E_SYSTEM, STAGE, -r, "cannot hand over changed rules");
	return take_fd(&fd);
}

static const char *direction(const struct network_effect *e)
{
	return e->widened && e->narrowed ? "widened and narrowed"
	       : e->widened		 ? "widened"
	       : e->narrowed		 ? "narrowed"
					 : "unchanged";
}

static json_t *result_of(const struct network_rules *rules, const struct network_effect *e)
{
	return json_pack("{s:I, s:s, s:O, s:O}", "revision", (json_int_t)rules->revision, "effect",
			 direction(e), "added", e->added, "removed", e->removed);
}

static int put_on_record(struct live *l, const struct network_rules *rules,
			 const struct network_effect *e, const struct live_who *who,
			 struct pale_err *err)
{
	json_t *body = result_of(rules, e);

	if (!body)
		return err_nomem(err, STAGE);
	json_object_set_new(body, "uid", json_integer(who->uid));
	json_object_set_new(body, "pid", json_integer(who->pid));
	json_object_set_new(body, "program",
			    audit_text(who->program, strnlen(who->program, sizeof(who->program)),
				       sizeof(who->program)));
	return l->ops.log(l->arg, body, err);
}

/* Everything that can fail has been done when the change is put on record, but for the broker. */
static int begin(struct live *l, const struct network_rules *rules, const struct network_effect *e,
		 const struct live_who *who, struct pale_err *err)
{
	static const struct timeval within = {.tv_sec = ANSWER_WITHIN};
	_cleanup_close_ int memfd = rules_memfd(rules->policy, err);
	int r;

	if (memfd < 0)
		return memfd;
	l->result = result_of(rules, e);
	if (!l->result || event_add(l->timer, &within) < 0)
		return err_nomem(err, STAGE);
	r = put_on_record(l, rules, e, who, err);
	if (r < 0)
		return r;
	r = l->ops.send(l->arg, memfd, err);
	/* The record says that they are changed. */
	if (r < 0)
		l->ops.lost(l->arg, err);
	return r;
}

int live_change(struct live *l, const struct network_change *c, uint64_t revision,
		const struct live_who *who, live_done *done, void *arg, json_t **ret,
		struct pale_err *err)
{
	_cleanup_rules_ struct network_rules rules = {0};
	_cleanup_effect_ struct network_effect effect = {0};
	int r;

	if (revision && revision != l->rules.revision)
		return err_set(err, PALE_E_CONFLICT, STAGE, 0,
			       "the rules have changed meanwhile: they are at revision %llu",
			       (unsigned long long)l->rules.revision);
	r = network_change_apply(c, &l->rules, &rules, &effect, err);
	if (r == 0)
		r = check_possible(l, &rules.policy->network, err);
	if (r < 0)
		return r;
	if (rules.revision == l->rules.revision) {
		*ret = result_of(&l->rules, &effect);
		return *ret ? 0 : err_nomem(err, STAGE);
	}
	r = begin(l, &rules, &effect, who, err);
	if (r < 0) {
		forget(l);
		return r;
	}
	l->coming = rules;
	rules = (struct network_rules){0};
	l->busy = true;
	l->done = done;
	l->done_arg = arg;
	return 1;
}

void live_forget(struct live *l, void *arg)
{
	if (l->busy && l->done_arg == arg)
		l->done = NULL;
}

/* The counters of rules that stay. */
static struct counters *carry_counters(const struct live *l)
{
	size_t n = l->coming.policy->network.nrules;
	struct counters *c = calloc(n + 1, sizeof(*c));

	for (size_t i = 0; c && i < n; i++) {
		long at = network_rules_find(&l->rules, l->coming.numbers[i]);

		if (at >= 0)
			c[i] = l->counters[at];
	}
	return c;
}

void live_taken(struct live *l)
{
	struct network_rules old = l->rules;
	struct counters *counters;
	struct pale_err err;

	if (!l->coming.policy)
		return;
	counters = carry_counters(l);
	if (!counters) {
		err_nomem(&err, STAGE);
		l->ops.lost(l->arg, &err);
		return;
	}
	free(l->counters);
	l->counters = counters;
	l->rules = l->coming;
	l->coming = (struct network_rules){0};
	l->ops.in_force(l->arg, &l->rules.policy->network);
	network_rules_done(&old);
}

void live_acknowledged(struct live *l)
{
	live_done *done = l->done;
	json_t *result;

	/* It was taken over, or there is no memory for that, and the box ends. */
	if (!l->busy || l->coming.policy)
		return;
	result = take_ptr(l->result);
	forget(l);
	if (done)
		done(l->done_arg, result, NULL);
	else
		json_decref(result);
}

/* ---- what they did ---- */

void live_count(struct live *l, const struct egress_event *event)
{
	size_t n = l->rules.policy->network.nrules;
	uint64_t count = event->count ? event->count : 1;
	bool blocked = event->outcome == EGRESS_BLOCKED || event->outcome == EGRESS_EXFILTRATION;
	struct counters *c;

	/* It is counted when it ends. */
	if (event->outcome == EGRESS_OPENED)
		return;
	if (event->rule < 0 || (size_t)event->rule >= n) {
		l->unmatched += blocked ? count : 0;
		return;
	}
	c = &l->counters[event->rule];
	if (blocked)
		c->blocked += count;
	else if (event->outcome == EGRESS_UNREACHABLE)
		c->unreachable += count;
	else if (event->what == EGRESS_REQUEST)
		c->requests += count;
	else if (event->what == EGRESS_CONNECTION)
		c->connections += count;
	/* A connection's bytes are those of its requests. */
	if (event->what == EGRESS_CONNECTION) {
		c->bytes_out += event->bytes_out;
		c->bytes_in += event->bytes_in;
	}
}

static json_t *figure(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *show_rule(const struct live *l, size_t i)
{
	const struct network_rule *r = &l->rules.policy->network.rules[i];
	const struct counters *c = &l->counters[i];
	char text[NETWORK_RULE_TEXT];

	return json_pack(
		"{s:I, s:b, s:s, s:s?, s:s?, s:o?, s:{s:o?, s:o?, s:o?, s:o?, s:o?, s:o?}}", "rule",
		(json_int_t)l->rules.numbers[i], "deny", r->deny, "text",
		network_rule_text(r, text), "preset", r->preset, "reason", r->reason, "entry",
		network_rule_entry(l->rules.policy, i), "counters", "connections",
		figure(c->connections), "requests", figure(c->requests), "blocked",
		figure(c->blocked), "unreachable", figure(c->unreachable), "bytes_out",
		figure(c->bytes_out), "bytes_in", figure(c->bytes_in));
}

json_t *live_show(const struct live *l)
{
	json_t *rules = json_array();

	for (size_t i = 0; rules && i < l->rules.policy->network.nrules; i++)
		if (json_array_append_new(rules, show_rule(l, i)) < 0) {
			json_decref(rules);
			return NULL;
		}
	return json_pack("{s:I, s:o, s:o}", "revision", (json_int_t)l->rules.revision, "rules",
			 rules, "unmatched_blocked", figure(l->unmatched));
}
