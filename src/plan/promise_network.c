/* The promises of the network axis: see promise.h. Text only. With rules, what holds them is the
 * broker, and each rule is a line. Of a secret there is the source of its value, never the value.
 */
#include "promise.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"

static void add_sockets(struct plan *p)
{
	struct promise *it = promise_add(p, AXIS_NETWORK, "sockets");

	SAY(it->what,
	    p->profile == PROFILE_STRICT
		    ? "Unix socket pairs only"
		    : "Unix, IPv4, IPv6 and route netlink sockets only; none of the host's");
	SAY(it->mechanism, "seccomp filter on socket families%s",
	    p->host.landlock.abi >= 6 ? ", Landlock scope for abstract sockets" : "");
}

static void no_network(struct plan *p)
{
	struct promise *it = promise_add(p, AXIS_NETWORK, "egress");

	SAY(it->what, "no way out; loopback works");
	SAY(it->mechanism, "an empty network namespace");
	add_sockets(p);
	it = promise_add(p, AXIS_NETWORK, "attempts");
	if (p->events) {
		SAY(it->what, "each attempt to leave is an event with destination and program; "
			      "each name asked for is answered \"no such name\" and is an event");
		SAY(it->mechanism,
		    "seccomp notification; a DNS answerer in the box's first process");
	} else {
		SAY(it->what, "attempts fail; names asked for are events");
		SAY(it->mechanism, "a DNS answerer in the box's first process");
		SAY(it->fallback, "no notification: an outer sandbox listens already");
		SAY(it->uncovered, "connection attempts make no event");
		it->best_effort = true;
	}
}

/* What kinds of rules there are. */
struct kinds {
	size_t sealed;	/* tls that is passed on as it is */
	size_t opened;	/* tls of which each request is seen */
	size_t raw;	/* tcp, udp */
	size_t clear;	/* http */
	size_t private; /* allowed addresses that are named */
};

static bool has_secret(const struct policy_network *n, const char *host)
{
	for (size_t i = 0; i < n->nsecrets; i++)
		for (char **h = n->secrets[i].hosts; *h; h++)
			if (network_pattern_covers(host, *h) || network_pattern_covers(*h, host))
				return true;
	return false;
}

static struct kinds count_kinds(const struct policy_network *n)
{
	struct kinds k = {0};

	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];

		if (r->deny)
			continue;
		if (r->protocols & NETWORK_TLS) {
			bool opened = r->intercept || (r->host && has_secret(n, r->host));

			*(opened ? &k.opened : &k.sealed) += 1;
		}
		k.raw += (r->protocols & (NETWORK_TCP | NETWORK_UDP)) != 0;
		k.clear += (r->protocols & NETWORK_HTTP) != 0;
		k.private += r->cidr != NULL;
	}
	return k;
}

static const char *plural(size_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* Texts, as many as fit. */
static void join(char *out, size_t size, char *const *texts)
{
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; texts && texts[i]; i++) {
		if (used + strlen(texts[i]) + 8 >= size) {
			snprintf(out + used, size - used, ", ...");
			return;
		}
		used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", texts[i]);
	}
}

static void add_content(struct plan *p, const struct kinds *k)
{
	struct promise *it;
	char hosts[120];

	if (k->sealed) {
		it = promise_add(p, AXIS_NETWORK, "tls");
		SAY(it->what,
		    "TLS of %zu rule%s is passed on unopened, if it is for the rule's name",
		    k->sealed, plural(k->sealed, "", "s"));
		SAY(it->mechanism, "the server name in the TLS hello");
		SAY(it->uncovered,
		    "what is asked for within it, also by another name that the same server "
		    "answers for (domain fronting); intercept: true opens it");
	}
	if (k->opened) {
		it = promise_add(p, AXIS_NETWORK, "intercept");
		SAY(it->what,
		    "TLS of %zu rule%s is opened, each request checked and logged; the server's "
		    "certificate is verified outside",
		    k->opened, plural(k->opened, "", "s"));
		SAY(it->mechanism, "a certificate authority of this box alone, held by the broker");
		SAY(it->uncovered, "programs that bring their own list of authorities, or pin a "
				   "certificate, fail: "
				   "network.exempt leaves their hosts unopened");
	}
	if (k->clear) {
		it = promise_add(p, AXIS_NETWORK, "http");
		SAY(it->what, "clear HTTP of %zu rule%s: each request is checked and logged",
		    k->clear, plural(k->clear, "", "s"));
		SAY(it->mechanism, "the broker's HTTP engine");
	}
	if (k->raw) {
		it = promise_add(p, AXIS_NETWORK, "raw");
		SAY(it->what, "tcp and udp of %zu rule%s go to the rule's hosts and ports only",
		    k->raw, plural(k->raw, "", "s"));
		SAY(it->mechanism, "the broker dials");
		SAY(it->uncovered, "nothing of the content is checked: the code may do there what "
				   "the other side lets it do");
	}
	if (p->network->exempt) {
		it = promise_add(p, AXIS_NETWORK, "exempt");
		join(hosts, sizeof(hosts), p->network->exempt);
		SAY(it->what, "TLS is never opened for %s", hosts);
		SAY(it->uncovered, "requests there are neither checked nor logged");
	}
}

static void add_caps(struct plan *p)
{
	const struct policy_network *n = p->network;
	struct promise *it = promise_add(p, AXIS_NETWORK, "caps");
	char rate[NUM_TEXT], total[NUM_TEXT];

	SAY(it->what, "%llu connections at a time%s%s%s%s%s", (unsigned long long)n->connections,
	    n->rate_bytes ? "; " : "", n->rate_bytes ? num_format_size(rate, n->rate_bytes) : "",
	    n->rate_bytes ? " a second" : "", n->total_bytes ? "; in all " : "",
	    n->total_bytes ? num_format_size(total, n->total_bytes) : "");
	SAY(it->mechanism, "the broker counts what it passes on");
	if (!n->rate_bytes && !n->total_bytes)
		SAY(it->uncovered, "how much goes out, but for caps of single rules; network: "
				   "{bytes: 1GiB, rate: 10MiB} limits it");
}

static void add_secrets(struct plan *p)
{
	static const char *const places[] = {"header", "query field", "basic authentication"};
	const struct policy_network *n = p->network;
	struct promise *it;

	if (!n->nsecrets)
		return;
	it = promise_add(p, AXIS_NETWORK, "secrets");
	SAY(it->what,
	    "the code holds placeholders; the values are put in on the way out, for their "
	    "hosts and places only, and masked in answers");
	SAY(it->mechanism, "the broker replaces them in what it opens; a placeholder elsewhere in "
			   "it is refused, and an event");
	SAY(it->uncovered,
	    "the host that is sent a secret can hand it on, or back in another form");
	for (size_t i = 0; i < n->nsecrets; i++) {
		const struct network_secret *s = &n->secrets[i];
		const char *name = s->env ? s->env : s->file;
		char hosts[60], source[60], shown[40];

		it = promise_add(p, AXIS_NETWORK, "secret");
		join(hosts, sizeof(hosts), s->hosts);
		SAY(it->what, "%s to %s, %s%s%.20s, from %s",
		    str_escape_into(shown, sizeof(shown), name, strlen(name)), hosts,
		    places[s->place], s->name ? " " : "", s->name ? s->name : "",
		    str_escape_into(source, sizeof(source), s->value_from, strlen(s->value_from)));
	}
}

static void add_published(struct plan *p)
{
	const struct policy_network *n = p->network;
	struct promise *it;

	if (!n->npublish)
		return;
	it = promise_add(p, AXIS_NETWORK, "inbound");
	SAY(it->what,
	    "the host reaches %zu port%s of the box, and no other; each connection is an "
	    "event",
	    n->npublish, plural(n->npublish, "", "s"));
	SAY(it->mechanism, "the box's first process connects inside and hands the socket out; the "
			   "broker passes bytes on");
	for (size_t i = 0; i < n->npublish; i++) {
		const struct network_publish *e = &n->publish[i];
		char path[120];

		it = promise_add(p, AXIS_NETWORK, "publish");
		if (e->path) {
			SAY(it->what, "port %u at %s, for its owner", e->port,
			    str_escape_into(path, sizeof(path), e->path, strlen(e->path)));
			SAY(it->mechanism, "a Unix socket with mode 0600");
			continue;
		}
		if (e->host_port)
			SAY(it->what, "port %u at port %u of 127.0.0.1 and ::1", e->port,
			    e->host_port);
		else
			SAY(it->what, "port %u at a free port of 127.0.0.1 and ::1", e->port);
		SAY(it->mechanism, "a listener on loopback");
		SAY(it->uncovered, "every user and program of the host can connect; path: makes a "
				   "socket for its owner alone");
	}
}

static void add_agent(struct plan *p)
{
	struct promise *it;
	char hosts[120];

	if (!p->agent_socket)
		return;
	it = promise_add(p, AXIS_NETWORK, "ssh_agent");
	join(hosts, sizeof(hosts), p->network->ssh_agent_hosts);
	SAY(it->what,
	    "the caller's ssh agent signs logins at %s, and nothing else; each is an event", hosts);
	SAY(it->mechanism, "the broker asks it only for sessions that a known host key of these "
			   "signed");
	SAY(it->uncovered, "what the code does there once it is logged in; the public keys of the "
			   "agent are seen inside");
}

static void add_rules(struct plan *p)
{
	for (size_t i = 0; i < p->network->nrules; i++) {
		const struct network_rule *r = &p->network->rules[i];
		struct promise *it = promise_add(p, AXIS_NETWORK, r->deny ? "deny" : "allow");
		char text[NETWORK_RULE_TEXT], rate[NUM_TEXT], total[NUM_TEXT], shown[24] = "";

		network_rule_text(r, text);
		if (r->preset)
			str_escape_into(shown, sizeof(shown), r->preset, strlen(r->preset));
		/* Without its first word, which is the key. */
		SAY(it->what, "%s%s%s%s%s%s%s%s", strchr(text, ' ') + 1,
		    r->preset ? " (preset " : "", shown, r->preset ? ")" : "",
		    r->rate_bytes ? ", a second " : "",
		    r->rate_bytes ? num_format_size(rate, r->rate_bytes) : "",
		    r->total_bytes ? ", in all " : "",
		    r->total_bytes ? num_format_size(total, r->total_bytes) : "");
	}
}

void promise_network(struct plan *p)
{
	struct promise *it;
	struct kinds k;

	if (!p->network) {
		no_network(p);
		return;
	}
	k = count_kinds(p->network);
	it = promise_add(p, AXIS_NETWORK, "egress");
	if (p->network->nrules && !p->network->rules[0].deny)
		SAY(it->what, "what a rule allows and none denies, by any client; all else is "
			      "refused at once; loopback works");
	else
		SAY(it->what, "no way out: no rule allows any; loopback works");
	SAY(it->mechanism,
	    "a network namespace with no way out; %s to a broker outside (seccomp%s, no files)",
	    nft_set_name(p->nft), p->landlock ? ", Landlock" : "");
	it = promise_add(p, AXIS_NETWORK, "names");
	SAY(it->what,
	    "resolved outside, anew for each connection; private, local and metadata addresses "
	    "are refused%s",
	    k.private ? " but those that a rule names" : "");
	SAY(it->mechanism, "the broker alone resolves and dials, and checks what it dials");
	add_content(p, &k);
	add_secrets(p);
	add_published(p);
	add_agent(p);
	add_caps(p);
	add_sockets(p);
	it = promise_add(p, AXIS_NETWORK, "attempts");
	SAY(it->what, "each connection and each name asked for is an event, allowed or refused");
	if (p->events) {
		SAY(it->mechanism, "the broker; seccomp notification tells the program");
	} else {
		SAY(it->mechanism, "the broker");
		SAY(it->fallback, "no notification: an outer sandbox listens already");
		SAY(it->uncovered, "which program it was; attempts by other protocols than TCP and "
				   "DNS make no event");
		it->best_effort = true;
	}
	add_rules(p);
}
