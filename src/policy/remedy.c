/* Which rule would have allowed what was refused: see remedy.h. Runs in the supervisor and in the
 * broker. The attempt is the box's: each of its texts goes into the rule only after it was found to
 * be what it should be, in the form that rules have. */
#include "policy/remedy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

#define PATH_TEXT 200 /* longer ones would make a line that nobody reads */

struct asked {
	const struct policy_network *n;
	const struct network_attempt *attempt;
	struct network_question q;
	char host[NETWORK_HOST_MAX + 1];
	struct network_cidr address; /* family 0: none */
	char path[NETWORK_PATH_MAX];
};

/* Addresses that lead nowhere from a box, whatever a rule says: they are its own, or many, or stand
 * for names. */
static bool reaches_nobody(const struct network_cidr *a, bool by_name)
{
	static const struct {
		const char *range;
		bool by_name; /* a name may lead there */
	} rows[] = {
		{"0.0.0.0/8", false},	{"127.0.0.0/8", true}, {"224.0.0.0/4", false},
		{"240.0.0.0/4", false}, {NETWORK_OWN4, false}, {NETWORK_SYNTHETIC4 "/16", false},
		{"::", false},		{"::1", true},	       {"fe80::/10", false},
		{"ff00::/8", false},	{NETWORK_OWN6, false}, {NETWORK_SYNTHETIC6 "/112", false}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct network_cidr range;

		if (network_cidr_parse(rows[i].range, &range) == 0 &&
		    network_cidr_contains(&range, a->family, &a->address))
			return !(by_name && rows[i].by_name);
	}
	return false;
}

/* Of a lookup backwards: what such a name stands for is an address. */
static bool is_backwards(const char *host)
{
	static const char *const ends[] = {".in-addr.arpa", ".ip6.arpa"};
	size_t len = strlen(host);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (len > strlen(ends[i]) && strcmp(host + len - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

/* The protocol that a rule has for a port if it says none; 0: it has to say one. */
static enum network_protocol usual(uint16_t port)
{
	return port == 443 ? NETWORK_TLS : port == 80 ? NETWORK_HTTP : port == 22 ? NETWORK_TCP : 0;
}

static bool understand(struct asked *k)
{
	const struct network_attempt *a = k->attempt;
	const char *why;

	k->q.port = a->port ? a->port : 443;
	k->q.protocol = a->protocol ? a->protocol : usual(k->q.port);
	if (!k->q.protocol) /* nobody has seen it: any bytes */
		k->q.protocol = NETWORK_TCP;
	if (a->address && *a->address &&
	    (network_cidr_parse(a->address, &k->address) < 0 || strchr(a->address, '/')))
		return false;
	if (a->host && *a->host) {
		if (network_host_normalise(a->host, strlen(a->host), k->host) < 0 ||
		    is_backwards(k->host))
			return false;
		k->q.host = k->host;
	} else {
		if (!k->address.family || !a->port)
			return false;
		k->q.family = k->address.family;
		k->q.address = &k->address.address;
	}
	if (!a->method || !*a->method)
		return true;
	if (!(k->q.protocol & (NETWORK_TLS | NETWORK_HTTP)) || strlen(a->method) > 20 ||
	    a->method[strspn(a->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")] ||
	    strcmp(a->method, "CONNECT") == 0)
		return false;
	k->q.method = a->method;
	if (!a->path || !*a->path || !k->n || !k->q.host || !network_has_paths(k->n, k->host))
		return true;
	k->q.path = k->path;
	return network_path_normalise(a->path, strcspn(a->path, "?#"), k->path, sizeof(k->path),
				      &why) == 0;
}

/* Such rules beside each other are an error: what is denied of the content could not be seen
 * (network_check.c). */
static bool denied_in_part(const struct asked *k)
{
	for (size_t i = 0; k->n && i < k->n->nrules; i++) {
		const struct network_rule *r = &k->n->rules[i];

		if (r->deny && r->host && network_host_matches(r->host, k->host) &&
		    network_rule_has_port(r, k->q.port) &&
		    (r->methods || r->paths || !(r->protocols & NETWORK_TCP)))
			return true;
	}
	return false;
}

/* Is it another rule that is missing, and would one not be denied? */
static bool can_help(struct asked *k)
{
	const struct network_question place = {.family = k->address.family,
					       .address = &k->address.address,
					       .port = k->q.port,
					       .protocol = k->q.protocol};
	struct network_answer said = {.rule = -1};

	if (k->n)
		said = network_ask(k->n, &k->q);
	if (said.rule >= 0 && k->n->rules[said.rule].deny)
		return false;
	if (said.allowed != k->attempt->unfit)
		return false;
	if (k->q.host && k->q.protocol == NETWORK_TCP && denied_in_part(k))
		return false;
	if (!k->address.family || (k->q.host && !k->attempt->unfit))
		return true;
	if (reaches_nobody(&k->address, k->q.host))
		return false;
	if (!k->n)
		return true;
	said = network_ask(k->n, &place);
	return said.rule < 0 || !k->n->rules[said.rule].deny;
}

/* What the rules say of this host already: where it leads, and whether only some requests to it are
 * allowed. */
static const struct network_cidr *known_place(const struct asked *k, bool *ret_requests)
{
	const struct network_cidr *place = NULL;

	*ret_requests = false;
	for (size_t i = 0; k->n && k->q.host && i < k->n->nrules; i++) {
		const struct network_rule *r = &k->n->rules[i];

		if (r->deny || !r->host || !network_host_matches(r->host, k->host))
			continue;
		if (!place)
			place = r->cidr;
		if (network_rule_has_port(r, k->q.port) && (r->protocols & k->q.protocol))
			*ret_requests |= r->methods || r->paths;
	}
	return place;
}

/* Where it is one of those to whose place the rules let others go, the rule is for the likes of it
 * alone; where nothing may be sent there, it is for the place. */
static bool for_request(struct asked *k)
{
	struct network_question place = k->q;

	place.method = place.path = NULL;
	return k->q.method && k->n && network_ask(k->n, &place).allowed;
}

static const char *scheme(const struct asked *k)
{
	if (k->q.protocol == usual(k->q.port))
		return "";
	switch (k->q.protocol) {
	case NETWORK_TLS: return "tls://";
	case NETWORK_HTTP: return "http://";
	case NETWORK_UDP: return "udp://";
	case NETWORK_TCP: break;
	}
	return "tcp://";
}

/* A path that can be written as it is, and means itself. */
static bool is_plain(const char *path)
{
	static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				  "/-._~+";

	return path[1] && strlen(path) <= PATH_TEXT && path[strspn(path, set)] == '\0';
}

bool network_remedy(const struct policy_network *n, const struct network_attempt *a,
		    char out[static NETWORK_REMEDY_TEXT])
{
	struct asked k = {.n = n, .attempt = a};
	char text[NETWORK_CIDR_TEXT] = "", port[8] = "";
	const struct network_cidr *place;
	bool requests, request, v6;

	*out = '\0';
	if (!understand(&k) || !can_help(&k))
		return false;
	place = known_place(&k, &requests);
	if (a->unfit) {
		/* A rule for all requests would allow more than was kept out, and one for some does
		 * not say where a connection may lead. */
		if (requests)
			return false;
		place = &k.address;
	}
	if (!k.q.host)
		place = &k.address;
	if (place)
		network_cidr_format(place, text);
	request = !a->unfit && for_request(&k);
	v6 = place && place->family == AF_INET6;
	if (a->port)
		snprintf(port, sizeof(port), ":%u", a->port);
	snprintf(out, NETWORK_REMEDY_TEXT, "%s%s%s%s%s%s%s%s%s%s", request ? k.q.method : "",
		 request ? " " : "", scheme(&k), k.host, *k.host && place ? "=" : "", v6 ? "[" : "",
		 text, v6 ? "]" : "", port,
		 request && k.q.path && is_plain(k.q.path) ? k.q.path : "");
	return true;
}
