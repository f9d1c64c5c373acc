/* What the egress broker tells: into the log, the list of what was blocked, and that of what was
 * used.
 *
 * In the supervisor. The event's fields are checked (egress.c); its texts are the box's or its
 * peers' and go through audit_text(). The broker tells the first of what is alike singly and the
 * rest in counts, so that a flood costs the log a few lines a second and the sums are exact. */
#include "supervise/events_internal.h"

#include <string.h>

#include "base/str.h"

#define STAGE "egress"

static const char *protocol_name(const struct egress_event *ev)
{
	switch (ev->protocol) {
	case NETWORK_TLS: return "tls";
	case NETWORK_HTTP: return "http";
	case NETWORK_TCP: return "tcp";
	case NETWORK_UDP: return "udp";
	}
	return "";
}

static const char *event_name(const struct egress_event *ev)
{
	if (ev->what == EGRESS_INBOUND)
		return "network.inbound";
	if (ev->what == EGRESS_AGENT_USE)
		return strcmp(ev->method, "sign") == 0 ? "ssh.sign" : "ssh.agent";
	switch ((enum egress_outcome)ev->outcome) {
	case EGRESS_ALLOWED:
		switch ((enum egress_what)ev->what) {
		case EGRESS_LOOKUP: return "dns.allowed";
		case EGRESS_REQUEST: return "network.request";
		case EGRESS_INBOUND:
		case EGRESS_AGENT_USE:
		case EGRESS_CONNECTION: break;
		}
		return "network.allowed";
	case EGRESS_OPENED: return "network.opened";
	case EGRESS_BLOCKED: return ev->what == EGRESS_LOOKUP ? "dns.blocked" : "network.blocked";
	case EGRESS_UNREACHABLE: return "network.unreachable";
	case EGRESS_EXFILTRATION: return "network.exfiltration";
	}
	return "network.blocked";
}

/* Its rule, where that is a part of what makes events alike: indices change with the rules. */
static const char *words_of(const struct policy_network *n, const struct egress_event *ev,
			    char out[static NETWORK_RULE_TEXT])
{
	return ev->rule < 0 ? "" : network_rule_text(&n->rules[ev->rule], out);
}

/* The rule that decided, in words, and where it stands. */
static void add_rule(json_t *o, const struct policy_network *n, const struct egress_event *ev)
{
	char text[NETWORK_RULE_TEXT];
	const struct network_rule *r;

	if (ev->rule < 0)
		return;
	r = &n->rules[ev->rule];
	network_rule_text(r, text);
	events_text(o, "rule", text, sizeof(text));
	if (r->where)
		events_text(o, "where", r->where, 256);
	if (r->reason)
		events_text(o, "reason", r->reason, 512);
}

static void add_target(json_t *o, const struct egress_event *ev)
{
	events_text(o, "host", ev->host, sizeof(ev->host));
	events_text(o, "address", ev->address, sizeof(ev->address));
	if (ev->port)
		json_object_set_new(o, "port", json_integer(ev->port));
	events_text(o, "protocol", protocol_name(ev), 8);
	events_text(o, "method", ev->method, sizeof(ev->method));
	events_text(o, "path", ev->path, sizeof(ev->path));
}

static const char *inbound_outcome(const struct egress_event *ev)
{
	switch ((enum egress_outcome)ev->outcome) {
	case EGRESS_ALLOWED: return "connected";
	case EGRESS_OPENED: return "open";
	case EGRESS_UNREACHABLE: return "unreachable";
	case EGRESS_BLOCKED:
	case EGRESS_EXFILTRATION: break;
	}
	return "refused";
}

static void add_flow(json_t *o, const struct egress_event *ev)
{
	/* A connection from outside comes from somebody, and nobody's rule decides about it. */
	if (ev->what == EGRESS_INBOUND) {
		events_text(o, "from", ev->sni, sizeof(ev->sni));
		json_object_set_new(o, "outcome",
				    json_string(ev->cut ? "box_ended" : inbound_outcome(ev)));
	} else if (strcmp(ev->sni, ev->host) != 0) {
		events_text(o, "sni", ev->sni, sizeof(ev->sni));
	}
	if (ev->cut && ev->what != EGRESS_INBOUND)
		json_object_set_new(o, "outcome", json_string("box_ended"));
	if (ev->status)
		json_object_set_new(o, "status", json_integer(ev->status));
	if (ev->bytes_out || ev->bytes_in) {
		json_object_set_new(o, "bytes_out", json_integer((json_int_t)ev->bytes_out));
		json_object_set_new(o, "bytes_in", json_integer((json_int_t)ev->bytes_in));
	}
	if (ev->duration_us)
		json_object_set_new(o, "duration_us", json_integer((json_int_t)ev->duration_us));
}

static void add_agent(json_t *o, const struct egress_event *ev)
{
	static const char *const outcomes[] = {[EGRESS_ALLOWED] = "allowed",
					       [EGRESS_OPENED] = "allowed",
					       [EGRESS_BLOCKED] = "refused",
					       [EGRESS_UNREACHABLE] = "failed",
					       [EGRESS_EXFILTRATION] = "refused"};

	events_text(o, "request", ev->method, sizeof(ev->method));
	events_text(o, "host", ev->host, sizeof(ev->host));
	events_text(o, "user", ev->sni, sizeof(ev->sni));
	events_text(o, "key", ev->path, sizeof(ev->path));
	json_object_set_new(o, "outcome", json_string(outcomes[ev->outcome]));
}

static void add_lookup(json_t *o, const struct egress_event *ev)
{
	events_text(o, "name", ev->host, sizeof(ev->host));
	if (ev->query)
		json_object_set_new(o, "type", json_integer(ev->query));
}

static void add_to_log(struct events *e, const struct policy_network *n,
		       const struct egress_event *ev, const char *program)
{
	json_t *body = json_object();

	if (ev->count > 1)
		json_object_set_new(body, "count", json_integer((json_int_t)ev->count));
	if (ev->what == EGRESS_LOOKUP)
		add_lookup(body, ev);
	else if (ev->what == EGRESS_AGENT_USE)
		add_agent(body, ev);
	else
		add_target(body, ev);
	if (ev->what != EGRESS_AGENT_USE) {
		add_flow(body, ev);
		add_rule(body, n, ev);
	}
	events_text(body, "detail", ev->detail, sizeof(ev->detail));
	events_text(body, "program", program, 256);
	events_append(e, STAGE, event_name(ev), body);
}

static void add_remedy(json_t *o, const struct policy_network *n, const struct egress_event *ev)
{
	const struct network_attempt a = {
		.host = ev->host,
		.address = ev->address,
		.unfit = ev->unfit,
		.port = ev->port,
		.protocol = (enum network_protocol)ev->protocol,
		.method = ev->what == EGRESS_REQUEST ? ev->method : NULL,
		.path = ev->path,
	};

	/* A request of which more is said than that no rule has it is at fault by itself. */
	if (ev->outcome != EGRESS_BLOCKED || ev->what == EGRESS_AGENT_USE ||
	    (ev->what == EGRESS_REQUEST && *ev->detail && !ev->unfit))
		return;
	events_remedy(o, n, &a);
}

/* Paths are too many to be kept apart: the latest one stands there. */
static void add_blocked(struct events *e, const struct policy_network *n,
			const struct egress_event *ev, const char *program)
{
	_cleanup_buf_ struct buf key = BUF_INIT(4096);
	char rule[NETWORK_RULE_TEXT];
	bool lookup = ev->what == EGRESS_LOOKUP;
	int kind = lookup ? EVENTS_DNS : EVENTS_EGRESS;
	json_t *entry = json_object();

	json_object_set_new(entry, "kind",
			    json_string(lookup				     ? "dns"
					: ev->what == EGRESS_AGENT_USE	     ? "ssh_agent"
					: ev->outcome == EGRESS_EXFILTRATION ? "exfiltration"
									     : "network"));
	if (lookup)
		events_text(entry, "name", ev->host, sizeof(ev->host));
	else if (ev->what == EGRESS_AGENT_USE)
		add_agent(entry, ev);
	else
		add_target(entry, ev);
	add_rule(entry, n, ev);
	events_text(entry, "detail", ev->detail, sizeof(ev->detail));
	events_text(entry, "program", program, 256);
	add_remedy(entry, n, ev);
	buf_addf(&key, "egress/%u/%u/%s/%u/%u/%s/", ev->outcome, ev->what, words_of(n, ev, rule),
		 ev->protocol, ev->port, ev->address);
	str_escape(&key, ev->host, strlen(ev->host));
	buf_adds(&key, "/");
	str_escape(&key, ev->method, strlen(ev->method));
	buf_adds(&key, "/");
	str_escape(&key, ev->detail, strlen(ev->detail));
	buf_adds(&key, "/");
	str_escape(&key, program, strlen(program));
	if (ev->what == EGRESS_AGENT_USE) {
		buf_adds(&key, "/");
		str_escape(&key, ev->sni, strlen(ev->sni));
		str_escape(&key, ev->path, strlen(ev->path));
	}
	if (!json_object_get(e->keys, key.data) && e->listed[kind] == EVENTS_MAX_LIST) {
		e->others[kind] += ev->count;
		json_decref(entry);
		return;
	}
	events_list(e, kind, key.data, entry,
		    lookup ? events_lookups(e, key.data, ev->query, ev->count)
			   : events_listed(e, key.data) + ev->count);
}

static void count(json_t *o, const char *key, uint64_t more)
{
	uint64_t sum = (uint64_t)json_integer_value(json_object_get(o, key));

	if (__builtin_add_overflow(sum, more, &sum) || sum > INT64_MAX)
		sum = INT64_MAX;
	json_object_set_new(o, key, json_integer((json_int_t)sum));
}

static json_t *used_entry(struct events *e, const struct policy_network *n,
			  const struct egress_event *ev)
{
	_cleanup_buf_ struct buf key = BUF_INIT(2048);
	char rule[NETWORK_RULE_TEXT];
	json_t *index, *entry;

	/* By name where there is one: its addresses change. */
	str_escape(&key, ev->host, strlen(ev->host));
	if (!*ev->host && ev->what != EGRESS_INBOUND)
		str_escape(&key, ev->address, strlen(ev->address));
	buf_addf(&key, "/%u/%u/%s/%d", ev->port, ev->protocol, words_of(n, ev, rule),
		 ev->what == EGRESS_INBOUND);
	index = json_object_get(e->used_keys, key.data);
	if (index)
		return json_array_get(e->used, (size_t)json_integer_value(index));
	if (json_array_size(e->used) == EVENTS_MAX_LIST)
		return NULL;
	entry = json_object();
	if (ev->what == EGRESS_INBOUND)
		json_object_set_new(entry, "inbound", json_true());
	events_text(entry, "host", ev->host, sizeof(ev->host));
	if (!*ev->host && ev->what != EGRESS_INBOUND)
		events_text(entry, "address", ev->address, sizeof(ev->address));
	if (ev->port)
		json_object_set_new(entry, "port", json_integer(ev->port));
	events_text(entry, "protocol", protocol_name(ev), 8);
	add_rule(entry, n, ev);
	json_object_set_new(e->used_keys, key.data,
			    json_integer((json_int_t)json_array_size(e->used)));
	json_array_append_new(e->used, entry);
	return entry;
}

static void add_used(struct events *e, const struct policy_network *n,
		     const struct egress_event *ev)
{
	bool failed = ev->outcome == EGRESS_UNREACHABLE;
	json_t *entry;

	/* There was no time for it: nothing is wrong with the network. */
	if (failed && ev->cut)
		return;
	entry = used_entry(e, n, ev);
	/* The last reason: the program itself often sees no more than a reset. */
	if (failed && entry)
		events_text(entry, "detail", ev->detail, sizeof(ev->detail));
	/* The bytes of a request are its connection's too. */
	if (ev->what == EGRESS_REQUEST) {
		if (!failed)
			e->requests += ev->count;
		if (entry)
			count(entry, failed ? "failed" : "requests", ev->count);
		return;
	}
	if (!failed)
		e->connections += ev->count;
	e->bytes_out += ev->bytes_out;
	e->bytes_in += ev->bytes_in;
	if (!entry)
		return;
	count(entry, failed ? "failed" : "connections", ev->count);
	if (ev->cut)
		count(entry, "box_ended", ev->count);
	count(entry, "bytes_out", ev->bytes_out);
	count(entry, "bytes_in", ev->bytes_in);
}

void events_egress(struct events *e, const struct policy_network *n, const struct egress_event *ev,
		   const char *program)
{
	add_to_log(e, n, ev, program);
	switch ((enum egress_outcome)ev->outcome) {
	case EGRESS_BLOCKED:
	case EGRESS_EXFILTRATION:
		/* The list is of what the box tried. */
		if (ev->what == EGRESS_INBOUND)
			return;
		add_blocked(e, n, ev, program);
		return;
	case EGRESS_ALLOWED:
	case EGRESS_UNREACHABLE:
		if (ev->what != EGRESS_LOOKUP && ev->what != EGRESS_AGENT_USE)
			add_used(e, n, ev);
		return;
	case EGRESS_OPENED: return; /* its end is told, too */
	}
}

json_t *events_network(const struct events *e)
{
	return json_pack("{sI sI sI sI sO}", "connections", (json_int_t)e->connections, "requests",
			 (json_int_t)e->requests, "bytes_out", (json_int_t)e->bytes_out, "bytes_in",
			 (json_int_t)e->bytes_in, "used", e->used);
}
