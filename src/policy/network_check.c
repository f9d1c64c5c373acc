/* What concerns several entries of a policy's network part at once. Runs where policies are read;
 * touches no file. */
#include "policy/model.h"

#include <string.h>

#include "base/str.h"

/* Whether two patterns have a name in common. */
static bool overlap(const char *a, const char *b)
{
	return network_pattern_covers(a, b) || network_pattern_covers(b, a);
}

static int check_exempt(const struct policy_network *n, const char *exempt, struct pale_err *err)
{
	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];
		const char *key = r->methods ? "methods" : r->paths ? "paths" : "intercept";

		if (!r->host || !(r->protocols & NETWORK_TLS) || !overlap(exempt, r->host))
			continue;
		if (r->methods || r->paths || r->intercept)
			return err_set(err, PALE_E_POLICY, "policy", 0,
				       "%s: `%s` cannot be enforced for %s, which network.exempt "
				       "names (%s): take it out of one of them",
				       r->where ? r->where : "network", key, r->host, exempt);
	}
	for (size_t i = 0; i < n->nsecrets; i++)
		for (char **host = n->secrets[i].hosts; *host; host++)
			if (overlap(exempt, *host))
				return err_set(
					err, PALE_E_POLICY, "policy", 0,
					"%s: a secret cannot be put into what goes to %s, which "
					"network.exempt names (%s)",
					n->secrets[i].where ? n->secrets[i].where : "network",
					*host, exempt);
	return 0;
}

static bool ports_overlap(const struct network_rule *a, const struct network_rule *b)
{
	for (size_t i = 0; i < a->nports; i++)
		for (size_t j = 0; j < b->nports; j++)
			if (a->ports[i].first <= b->ports[j].last &&
			    b->ports[j].first <= a->ports[i].last)
				return true;
	return false;
}

/* A rule that denies requests, or TLS or HTTP alone, says nothing of raw bytes, which may be just
 * that. */
static bool denies_part_of_tcp(const struct network_rule *r)
{
	return r->deny && r->host &&
	       (r->methods || r->paths ||
		(!(r->protocols & NETWORK_TCP) && (r->protocols & (NETWORK_TLS | NETWORK_HTTP))));
}

static int check_denied_requests(const struct policy_network *n, const struct network_rule *deny,
				 struct pale_err *err)
{
	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];

		if (!r->deny && (r->protocols & NETWORK_TCP) && r->host &&
		    overlap(r->host, deny->host) && ports_overlap(r, deny))
			return err_set(
				err, PALE_E_POLICY, "policy", 0,
				"%s: `%s` cannot be enforced for %s, which is allowed as tcp "
				"(%s): allow it as tls or http%s",
				deny->where ? deny->where : "network",
				deny->methods ? "methods"
				: deny->paths ? "paths"
					      : "protocol",
				deny->host, r->where ? r->where : "network",
				deny->methods || deny->paths ? "" : ", or deny tcp, too");
	}
	return 0;
}

/* A secret for a host that no rule allows would never be used: most likely one of them is misspelt.
 */
static int check_secret_host(const struct policy_network *n, const struct network_secret *s,
			     const char *host, struct pale_err *err)
{
	bool named = false;

	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];

		if (r->deny || !r->host || !overlap(r->host, host))
			continue;
		named = true;
		if (r->protocols & (NETWORK_TLS | NETWORK_HTTP))
			return 0;
	}
	return err_set(err, PALE_E_POLICY, "policy", 0, "%s: the secret is for %s, which %s",
		       s->where ? s->where : "network", host,
		       named ? "is allowed as tcp or udp only, into which no secret can be put"
			     : "no rule of network.allow allows");
}

static bool same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static int check_secret(const struct policy *p, size_t index, struct pale_err *err)
{
	const struct policy_network *n = &p->network;
	const struct network_secret *s = &n->secrets[index];
	const char *where = s->where ? s->where : "network";

	for (size_t i = 0; i < p->nenv; i++)
		if (same(s->env, p->env[i].name))
			return err_set(err, PALE_E_POLICY, "policy", 0,
				       "%s: env gives %s a value already: the placeholder of the "
				       "secret is its value",
				       where, s->env);
	for (size_t i = 0; i < index; i++)
		if (same(s->env, n->secrets[i].env) || same(s->file, n->secrets[i].file))
			return err_set(err, PALE_E_POLICY, "policy", 0,
				       "%s: another secret has %s already (%s)", where,
				       QUOTED(same(s->env, n->secrets[i].env) ? s->env : s->file),
				       n->secrets[i].where ? n->secrets[i].where : "network");
	for (size_t i = 0; s->file && i < p->nfiles; i++)
		if (same(s->file, p->files[i].path))
			return err_set(err, PALE_E_POLICY, "policy", 0,
				       "%s: %s is an entry of files, too (%s)", where,
				       QUOTED(s->file), p->files[i].where);
	return 0;
}

/* An agent for a host to which no ssh connection is possible: most likely one of them is misspelt.
 */
static int check_agent_host(const struct policy_network *n, const char *host, struct pale_err *err)
{
	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];

		if (!r->deny && r->host && (r->protocols & NETWORK_TCP) &&
		    network_host_matches(r->host, host))
			return 0;
	}
	return err_set(err, PALE_E_POLICY, "policy", 0,
		       "network.ssh_agent: no rule of network.allow lets ssh reach %s: add {host: "
		       "%s, port: 22}",
		       host, host);
}

int policy_check_whole(const struct policy *p, struct pale_err *err)
{
	const struct policy_network *n = &p->network;
	int r = 0;

	for (char **host = n->ssh_agent_hosts; r >= 0 && host && *host; host++)
		r = check_agent_host(n, *host, err);

	if (network_wanted(n) && p->profile == PROFILE_STRICT)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "%s: kernel: {profile: strict} has no sockets, so that no rule of "
			       "network.allow can be used: use the profile default",
			       n->nrules && n->rules[0].where ? n->rules[0].where : "network");
	for (size_t i = 0; i < n->nsecrets; i++)
		for (char **host = n->secrets[i].hosts; r >= 0 && *host; host++)
			r = check_secret_host(n, &n->secrets[i], *host, err);
	return r;
}

static size_t length(const char *text)
{
	return text ? strlen(text) : 0;
}

/* The broker is sent the rules whole. */
static int check_size(const struct policy_network *n, struct pale_err *err)
{
	size_t size = 0;

	for (size_t i = 0; i < n->nrules; i++) {
		const struct network_rule *r = &n->rules[i];

		size += length(r->host) + length(r->reason) + length(r->preset) + 16 * r->nports;
		for (char **m = r->methods; m && *m; m++)
			size += strlen(*m);
		for (char **path = r->paths; path && *path; path++)
			size += strlen(*path);
	}
	if (size <= POLICY_MAX_NETWORK)
		return 0;
	return err_set(err, PALE_E_POLICY, "policy", 0,
		       "network: the rules are longer than %u bytes together, presets written out",
		       POLICY_MAX_NETWORK);
}

int network_check(const struct policy *p, struct pale_err *err)
{
	const struct policy_network *n = &p->network;
	int r = check_size(n, err);

	for (char **exempt = n->exempt; r >= 0 && exempt && *exempt; exempt++)
		r = check_exempt(n, *exempt, err);
	for (size_t i = 0; r >= 0 && i < n->nrules; i++)
		if (denies_part_of_tcp(&n->rules[i]))
			r = check_denied_requests(n, &n->rules[i], err);
	for (size_t i = 0; r >= 0 && i < n->nsecrets; i++)
		r = check_secret(p, i, err);
	return r < 0 ? r : publish_check(p, err);
}
