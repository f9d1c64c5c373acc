/* What the rules of a policy's network part say: see network.h. Runs in the supervisor and in the
 * egress broker, which asks for everything the box does. What is asked is hostile, but was
 * normalised (hostname.c, pathglob.c); the rules are the policy's. */
#include "policy/network.h"

#include <stdio.h>
#include <string.h>

#include "policy/model.h"
#include "policy/options.h"

void network_rule_done(struct network_rule *r)
{
	free(r->host);
	free(r->cidr);
	free(r->ports);
	texts_free(r->methods);
	texts_free(r->paths);
	free(r->reason);
	free(r->preset);
	free(r->where);
	*r = (struct network_rule){0};
}

void network_secret_done(struct network_secret *s)
{
	free(s->env);
	free(s->file);
	free(s->value_from);
	texts_free(s->hosts);
	free(s->name);
	free(s->where);
}

void network_done(struct policy_network *n)
{
	for (size_t i = 0; i < n->nrules; i++)
		network_rule_done(&n->rules[i]);
	for (size_t i = 0; i < n->nsecrets; i++)
		network_secret_done(&n->secrets[i]);
	for (size_t i = 0; i < n->npublish; i++) {
		free(n->publish[i].path);
		free(n->publish[i].where);
	}
	free(n->rules);
	free(n->secrets);
	free(n->publish);
	texts_free(n->exempt);
	texts_free(n->extra_ca);
	texts_free(n->ssh_agent_hosts);
	*n = (struct policy_network){0};
}

static int copy_text(char **ret, const char *text)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int copy_array(void *ret, const void *from, size_t n, size_t size)
{
	void *copy = n ? calloc(n, size) : NULL;

	if (n && !copy)
		return -ENOMEM;
	if (n)
		memcpy(copy, from, n * size);
	memcpy(ret, &copy, sizeof(copy));
	return 0;
}

int network_rule_copy(struct network_rule *ret, const struct network_rule *from)
{
	struct network_rule r = *from;

	r.host = r.reason = r.preset = r.where = NULL;
	r.cidr = NULL;
	r.ports = NULL;
	r.methods = r.paths = NULL;
	if (copy_text(&r.host, from->host) < 0 ||
	    copy_array(&r.cidr, from->cidr, from->cidr ? 1 : 0, sizeof(*r.cidr)) < 0 ||
	    copy_array(&r.ports, from->ports, from->nports, sizeof(*r.ports)) < 0 ||
	    texts_copy(&r.methods, from->methods) < 0 || texts_copy(&r.paths, from->paths) < 0 ||
	    copy_text(&r.reason, from->reason) < 0 || copy_text(&r.preset, from->preset) < 0 ||
	    copy_text(&r.where, from->where) < 0) {
		network_rule_done(&r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

static int secret_copy(struct network_secret *ret, const struct network_secret *from)
{
	struct network_secret s = {.place = from->place};

	if (copy_text(&s.env, from->env) < 0 || copy_text(&s.file, from->file) < 0 ||
	    copy_text(&s.value_from, from->value_from) < 0 ||
	    texts_copy(&s.hosts, from->hosts) < 0 || copy_text(&s.name, from->name) < 0 ||
	    copy_text(&s.where, from->where) < 0) {
		network_secret_done(&s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

static int publish_copy(struct network_publish *ret, const struct network_publish *from)
{
	struct network_publish p = {.port = from->port, .host_port = from->host_port};

	if (copy_text(&p.path, from->path) < 0 || copy_text(&p.where, from->where) < 0) {
		free(p.path);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

int network_copy(struct policy_network *ret, const struct policy_network *from)
{
	struct policy_network n = {.rate_bytes = from->rate_bytes,
				   .total_bytes = from->total_bytes,
				   .connections = from->connections};
	int r = texts_copy(&n.exempt, from->exempt);

	if (r >= 0)
		r = texts_copy(&n.extra_ca, from->extra_ca);
	if (r >= 0)
		r = texts_copy(&n.ssh_agent_hosts, from->ssh_agent_hosts);
	for (size_t i = 0; r >= 0 && i < from->nrules; i++, n.nrules += r >= 0) {
		r = policy_grow(&n.rules, n.nrules, sizeof(*n.rules));
		if (r >= 0)
			r = network_rule_copy(&n.rules[i], &from->rules[i]);
	}
	for (size_t i = 0; r >= 0 && i < from->nsecrets; i++, n.nsecrets += r >= 0) {
		r = policy_grow(&n.secrets, n.nsecrets, sizeof(*n.secrets));
		if (r >= 0)
			r = secret_copy(&n.secrets[i], &from->secrets[i]);
	}
	for (size_t i = 0; r >= 0 && i < from->npublish; i++, n.npublish += r >= 0) {
		r = policy_grow(&n.publish, n.npublish, sizeof(*n.publish));
		if (r >= 0)
			r = publish_copy(&n.publish[i], &from->publish[i]);
	}
	if (r < 0) {
		network_done(&n);
		return -ENOMEM;
	}
	*ret = n;
	return 0;
}

bool network_wanted(const struct policy_network *n)
{
	return (n->nrules && !n->rules[0].deny) || n->npublish || n->ssh_agent_hosts;
}

/* ---- one rule ---- */

bool network_rule_has_port(const struct network_rule *r, uint16_t port)
{
	for (size_t i = 0; i < r->nports; i++)
		if (port >= r->ports[i].first && port <= r->ports[i].last)
			return true;
	return false;
}

static bool every_port(const struct network_rule *r)
{
	return r->nports == 1 && r->ports[0].first <= 1 && r->ports[0].last == UINT16_MAX;
}

static bool has_text(char *const *texts, const char *text)
{
	for (; *texts; texts++)
		if (strcmp(*texts, text) == 0)
			return true;
	return false;
}

static bool has_path(const struct network_rule *r, const char *path)
{
	for (char **glob = r->paths; *glob; glob++)
		if (network_glob_matches(*glob, path))
			return true;
	return false;
}

static bool any_host(char *const *patterns, const char *host)
{
	for (; patterns && *patterns; patterns++)
		if (network_host_matches(*patterns, host))
			return true;
	return false;
}

/* A rule with both names is one for the host: what its address has to be is network_may_dial()'s.
 */
static bool names(const struct network_rule *r, const struct network_question *q)
{
	if (q->host)
		return r->host && network_host_matches(r->host, q->host);
	if (r->host || !r->cidr)
		return false;
	return r->deny ? network_cidr_reaches(r->cidr, q->family, q->address)
		       : network_cidr_contains(r->cidr, q->family, q->address);
}

enum { ALL_PROTOCOLS = NETWORK_TLS | NETWORK_HTTP | NETWORK_TCP | NETWORK_UDP };

/* Does the rule, which names the host, cover the rest of what is asked? What was left out counts as
 * covered by a rule that allows, and by one that denies only if it denies all of it. */
static bool covers(const struct network_rule *r, const struct network_question *q)
{
	if (q->port ? !network_rule_has_port(r, q->port) : r->deny && !every_port(r))
		return false;
	if (q->protocol ? !(r->protocols & q->protocol)
			: r->deny && (r->protocols & ALL_PROTOCOLS) != ALL_PROTOCOLS)
		return false;
	if (r->methods && (q->method ? !has_text(r->methods, q->method) : r->deny))
		return false;
	if (r->paths && (q->path ? !has_path(r, q->path) : r->deny))
		return false;
	return true;
}

struct network_answer network_ask(const struct policy_network *n, const struct network_question *q)
{
	struct network_answer a = {.rule = -1};

	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];

		if (!names(r, q))
			continue;
		a.named = true;
		if (!covers(r, q))
			continue;
		if (r->deny) {
			a.allowed = false;
			a.rule = (int)i;
			return a;
		}
		if (a.rule < 0) {
			a.allowed = true;
			a.rule = (int)i;
		}
	}
	return a;
}

bool network_secret_for(const struct network_secret *s, const char *host)
{
	return any_host(s->hosts, host);
}

bool network_intercepts(const struct policy_network *n, const char *host, uint16_t port)
{
	const struct network_question q = {.host = host, .port = port, .protocol = NETWORK_TLS};
	bool looked_into = false;

	if (!network_ask(n, &q).allowed || any_host(n->exempt, host))
		return false;
	for (size_t i = 0; i < n->nsecrets; i++)
		looked_into = looked_into || network_secret_for(&n->secrets[i], host);
	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];

		if (names(r, &q) && network_rule_has_port(r, port) && (r->protocols & NETWORK_TLS))
			looked_into = looked_into || r->intercept || r->methods || r->paths;
	}
	return looked_into;
}

bool network_may_intercept(const struct policy_network *n)
{
	if (n->nsecrets)
		return true;
	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];

		if ((r->protocols & NETWORK_TLS) && (r->intercept || r->methods || r->paths))
			return true;
	}
	return false;
}

bool network_has_paths(const struct policy_network *n, const char *host)
{
	const struct network_question q = {.host = host};

	for (size_t i = 0; i < n->nrules; i++)
		if (n->rules[i].paths && names(&n->rules[i], &q))
			return true;
	return false;
}

/* Does the rule let the connection be made? */
static bool lets_connect(const struct network_rule *r, const struct network_question *q)
{
	return !r->deny && names(r, q) && covers(r, q);
}

/* The narrower of the two ranges, if the second has the address at all. */
static const struct network_cidr *narrower(const struct network_cidr *a,
					   const struct network_cidr *b, int family,
					   const void *address)
{
	if (!b || !network_cidr_contains(b, family, address))
		return a;
	return a && a->bits >= b->bits ? a : b;
}

const struct network_cidr *network_named_by(const struct policy_network *n,
					    const struct network_dial *d, bool *ret_bound)
{
	const struct network_question host = {
		.host = d->host, .port = d->port, .protocol = d->protocol};
	const struct network_question address = {.family = d->family,
						 .address = d->address,
						 .port = d->port,
						 .protocol = d->protocol};
	const struct network_cidr *by = NULL;
	bool bound = d->host != NULL;

	*ret_bound = bound;
	for (size_t i = 0; d->host && i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];

		/* A rule for some requests does not say where the others may lead. */
		if ((int)i != d->rule && (r->methods || r->paths || !lets_connect(r, &host)))
			continue;
		by = narrower(by, r->cidr, d->family, d->address);
		bound = bound && r->cidr;
	}
	*ret_bound = bound;
	for (size_t i = 0; !bound && i < n->nrules; i++)
		if (lets_connect(&n->rules[i], &address))
			by = narrower(by, n->rules[i].cidr, d->family, d->address);
	return by;
}

bool network_may_dial(const struct policy_network *n, const struct network_dial *d)
{
	const struct network_question q = {.family = d->family,
					   .address = d->address,
					   .port = d->port,
					   .protocol = d->protocol};
	struct network_answer a = network_ask(n, &q);
	bool bound;

	if (d->rule < 0 || (size_t)d->rule >= n->nrules || n->rules[d->rule].deny)
		return false;
	if (a.rule >= 0 && n->rules[a.rule].deny)
		return false;
	if (network_named_by(n, d, &bound))
		return true;
	return !bound && network_address_public(d->family, d->address);
}

/* ---- for people ---- */

struct line {
	char *text;
	size_t used;
};

static void add(struct line *l, const char *before, const char *text)
{
	size_t room = NETWORK_RULE_TEXT - l->used;
	int n = snprintf(l->text + l->used, room, "%s%s", before, text);

	if (n < 0 || (size_t)n >= room) {
		/* Cut where it shows. */
		memcpy(l->text + NETWORK_RULE_TEXT - 4, "...", 4);
		l->used = NETWORK_RULE_TEXT - 1;
	} else {
		l->used += (size_t)n;
	}
}

const char *network_rule_text(const struct network_rule *r, char out[static NETWORK_RULE_TEXT])
{
	static const struct {
		unsigned bit;
		const char *name;
	} protocols[] = {{NETWORK_TLS, "tls"},
			 {NETWORK_HTTP, "http"},
			 {NETWORK_TCP, "tcp"},
			 {NETWORK_UDP, "udp"}};
	struct line l = {.text = out};
	char text[NETWORK_CIDR_TEXT], port[24];
	const char *before = " ";

	add(&l, "", r->deny ? "deny" : "allow");
	if ((r->protocols & ALL_PROTOCOLS) != ALL_PROTOCOLS) {
		for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
			if (!(r->protocols & protocols[i].bit))
				continue;
			add(&l, before, protocols[i].name);
			before = ",";
		}
	}
	if (r->host)
		add(&l, " ", r->host);
	if (r->cidr)
		add(&l, r->host ? " in " : " ", network_cidr_format(r->cidr, text));
	for (size_t i = 0; i < r->nports && !every_port(r); i++) {
		if (r->ports[i].first == r->ports[i].last)
			snprintf(port, sizeof(port), "%u", r->ports[i].first);
		else
			snprintf(port, sizeof(port), "%u-%u", r->ports[i].first, r->ports[i].last);
		/* "2001:db8::1 port 443": a colon would be part of the address. */
		add(&l, i ? "," : r->cidr ? " port " : ":", port);
	}
	for (size_t i = 0; r->methods && r->methods[i]; i++)
		add(&l, i ? "," : " ", r->methods[i]);
	for (size_t i = 0; r->paths && r->paths[i]; i++)
		add(&l, i ? "," : " ", r->paths[i]);
	return out;
}
