/* Rules and secrets of a policy's network part: see rules.h. Runs where policies are read, with the
 * caller's rights; rows may come from hostile texts. What an entry leaves out is filled in here,
 * once, so that the rules themselves leave nothing open. */
#include "policy/rules.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "policy/paths.h"

/* ---- values ---- */

int rule_host_normal(const char *text, char ret[static OPTION_TEXT_MAX])
{
	return network_pattern_normalise(text, ret);
}

int rule_single_host_normal(const char *text, char ret[static OPTION_TEXT_MAX])
{
	return network_host_normalise(text, strlen(text), ret);
}

void rule_host_hint(const char *text, struct pale_err *err)
{
	struct network_cidr cidr;

	if (network_cidr_parse(text, &cidr) == 0)
		err_add(err, ": an address is written with `address`");
	else if (strstr(text, "://"))
		err_add(err, ": only the name, without https:// and path");
	else if (strchr(text, '/'))
		err_add(err, ": a path is written with `paths`");
	else if (strchr(text, ':'))
		err_add(err, ": a port is written with `port`");
	else if (strcmp(text, "*") == 0)
		err_add(err, ": there is no rule for all hosts; name them");
	else if (strchr(text, '*'))
		err_add(err, ": `*.` stands for whole labels, at the beginning only");
	else
		for (; *text; text++)
			if ((unsigned char)*text >= 0x80) {
				err_add(err, ": write it in its ASCII form, xn--...");
				return;
			}
}

int rule_address_normal(const char *text, char ret[static OPTION_TEXT_MAX])
{
	struct network_cidr cidr;

	if (network_cidr_parse(text, &cidr) < 0)
		return -EINVAL;
	network_cidr_format(&cidr, ret);
	return 0;
}

/* "443", "8000-8010". */
static int parse_ports(const char *text, struct network_range *ret)
{
	char first[8];
	const char *dash = strchr(text, '-');
	size_t n = dash ? (size_t)(dash - text) : strlen(text);
	uint64_t a, b;

	if (n >= sizeof(first))
		return -EINVAL;
	memcpy(first, text, n);
	first[n] = '\0';
	if (num_parse_u64(first, UINT16_MAX, &a) < 0 || a == 0)
		return -EINVAL;
	b = a;
	if (dash && (num_parse_u64(dash + 1, UINT16_MAX, &b) < 0 || b < a))
		return -EINVAL;
	*ret = (struct network_range){(uint16_t)a, (uint16_t)b};
	return 0;
}

static void format_ports(const struct network_range *r, char out[static 16])
{
	if (r->first == r->last)
		snprintf(out, 16, "%u", r->first);
	else
		snprintf(out, 16, "%u-%u", r->first, r->last);
}

int rule_ports_normal(const char *text, char ret[static OPTION_TEXT_MAX])
{
	struct network_range range;

	if (parse_ports(text, &range) < 0)
		return -EINVAL;
	format_ports(&range, ret);
	return 0;
}

/* A token of RFC 9110. */
static bool is_token(const char *s)
{
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("!#$%&'*+-.^_`|~", *s))
			return false;
	return true;
}

int rule_method_normal(const char *text, char ret[static OPTION_TEXT_MAX])
{
	size_t n = strlen(text);

	if (n > 20 || !is_token(text))
		return -EINVAL;
	for (size_t i = 0; i <= n; i++)
		ret[i] = (char)toupper((unsigned char)text[i]);
	return 0;
}

/* A glob is kept as paths are compared, decoded, and written as people write paths. ret has room
 * for OPTION_TEXT_MAX; -EINVAL: no path of a request could ever be covered by it. */
static int decode_glob(const char *text, char *ret)
{
	char whole[OPTION_TEXT_MAX + 1], decoded[OPTION_TEXT_MAX + 1];
	size_t skip = str_starts(text, "**") ? 1 : 0;
	const char *why;
	int r;

	/* A star that stands for itself cannot be said. */
	if (strcasestr(text, "%2a") || strlen(text) >= OPTION_TEXT_MAX)
		return -EINVAL;
	snprintf(whole, sizeof(whole), "%s%s", skip ? "/" : "", text);
	r = network_path_normalise(whole, strlen(whole), decoded, sizeof(decoded), &why);
	if (r < 0)
		return -EINVAL;
	memcpy(ret, decoded + skip, strlen(decoded + skip) + 1);
	return 0;
}

static int encode_glob(const char *glob, char ret[static OPTION_TEXT_MAX])
{
	size_t used = 0;

	for (; *glob; glob++) {
		bool plain = !strchr("% ?#", *glob);

		if (used + 4 > OPTION_TEXT_MAX)
			return -EINVAL;
		used += (size_t)snprintf(ret + used, 4, plain ? "%c" : "%%%02X", *glob);
	}
	ret[used] = '\0';
	return 0;
}

int rule_path_normal(const char *text, char ret[static OPTION_TEXT_MAX])
{
	char glob[OPTION_TEXT_MAX];
	int r = decode_glob(text, glob);

	return r < 0 ? r : encode_glob(glob, ret);
}

/* Not those by which a message's end, or the server, is found. */
int secret_header_normal(const char *text, char ret[static OPTION_TEXT_MAX])
{
	static const char *const framing[] = {"host",	 "connection", "content-length",   "te",
					      "trailer", "upgrade",    "transfer-encoding"};
	size_t n = strlen(text);

	if (n > 64 || !is_token(text))
		return -EINVAL;
	for (size_t i = 0; i <= n; i++)
		ret[i] = (char)tolower((unsigned char)text[i]);
	for (size_t i = 0; i < ARRAY_SIZE(framing); i++)
		if (strcmp(ret, framing[i]) == 0)
			return -EINVAL;
	return 0;
}

bool secret_query_valid(const char *text)
{
	static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				  "-._~[]";

	return text[strspn(text, set)] == '\0';
}

bool secret_env_valid(const char *text)
{
	static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return !isdigit((unsigned char)*text) && text[strspn(text, set)] == '\0' &&
	       !str_starts(text, "PALE_");
}

bool secret_source_valid(const char *text)
{
	uint64_t fd;

	if (str_starts(text, "env:"))
		return text[4] && !strchr(text, '=');
	if (str_starts(text, "file:"))
		return text[5] != '\0';
	if (str_starts(text, "command:"))
		return text[8] != '\0';
	return str_starts(text, "fd:") && num_parse_u64(text + 3, INT_MAX, &fd) == 0;
}

/* ---- rules ---- */

static int copy_text(char **ret, const char *text)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

int rule_view(const struct network_rule *rule, struct rule_row *row)
{
	char text[NETWORK_CIDR_TEXT], glob[OPTION_TEXT_MAX];

	row->protocols = rule->protocols;
	/* A rule that denies has no say in whether requests are looked at. */
	row->intercept = rule->intercept ? BOOL_TRUE : BOOL_NOT_GIVEN;
	row->rate_bytes = rule->rate_bytes;
	row->total_bytes = rule->total_bytes;
	if (copy_text(&row->host, rule->host) < 0 || copy_text(&row->reason, rule->reason) < 0 ||
	    copy_text(&row->preset, rule->preset) < 0 ||
	    texts_copy(&row->methods, rule->methods) < 0)
		return -ENOMEM;
	for (size_t i = 0; rule->paths && rule->paths[i]; i++)
		if (encode_glob(rule->paths[i], glob) < 0 || texts_add(&row->paths, glob) < 0)
			return -ENOMEM;
	if (rule->cidr && copy_text(&row->address, network_cidr_format(rule->cidr, text)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < rule->nports; i++) {
		format_ports(&rule->ports[i], text);
		if (rule->nports == 1 ? copy_text(&row->port, text) < 0
				      : texts_add(&row->ports, text) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_range(struct network_rule *r, struct network_range range)
{
	if (policy_grow(&r->ports, r->nports, sizeof(*r->ports)) < 0)
		return -ENOMEM;
	r->ports[r->nports++] = range;
	return 0;
}

/* The protocol that a port stands for where none is said; 0: none. */
static unsigned usual_protocol(const struct network_range *range)
{
	if (range->first != range->last)
		return 0;
	return range->first == 443  ? NETWORK_TLS
	       : range->first == 80 ? NETWORK_HTTP
	       : range->first == 22 ? NETWORK_TCP
				    : 0;
}

/* The ranges of row->port and row->ports; what they are where both were left out. */
static int read_ports(const struct rule_row *row, bool deny, struct network_rule *r,
		      struct pale_err *err)
{
	struct network_range range;
	int e = 0;

	if (row->port && row->ports)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "`port` and `ports` exclude each other");
	if (row->port && parse_ports(row->port, &range) == 0)
		e = add_range(r, range);
	for (size_t i = 0; e >= 0 && row->ports && row->ports[i]; i++)
		if (parse_ports(row->ports[i], &range) == 0)
			e = add_range(r, range);
	if (e >= 0 && r->nports == 0 && deny)
		e = add_range(r, (struct network_range){1, UINT16_MAX});
	if (e >= 0 && r->nports == 0 && (row->protocols & (NETWORK_TCP | NETWORK_UDP)))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "a rule for tcp or udp says its ports: port: 5432");
	if (e >= 0 && r->nports == 0 && (!row->protocols || row->protocols & NETWORK_TLS))
		e = add_range(r, (struct network_range){443, 443});
	if (e >= 0 && !row->port && !row->ports && !deny && (row->protocols & NETWORK_HTTP))
		e = add_range(r, (struct network_range){80, 80});
	return e < 0 ? err_nomem(err, "policy") : 0;
}

static int check_requests(const struct rule_row *row, const struct network_rule *r,
			  struct pale_err *err)
{
	const char *what = row->methods ? "methods" : row->paths ? "paths" : NULL;

	if (r->deny && (row->rate_bytes || row->total_bytes || row->intercept || row->preset))
		return err_set(err, PALE_E_POLICY, "policy", 0, "`%s` belongs to rules that allow",
			       row->rate_bytes	  ? "rate"
			       : row->total_bytes ? "bytes"
			       : row->intercept	  ? "intercept"
						  : "preset");
	if (r->deny && r->cidr && r->host)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "a rule that denies has `host` or `address`, not both");
	/* The addresses of a name are checked when they are dialled: there is no request then. */
	if (r->deny && r->cidr && what)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "`%s` belongs to rules for hosts: an address is denied whole", what);
	if (r->deny)
		return 0;
	if (!r->host && (what || row->intercept == BOOL_TRUE) && (r->protocols & NETWORK_TLS))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "TLS to an address cannot be opened, so that `%s` could not be "
			       "checked: name the host (and its `address`)",
			       what ? what : "intercept");
	if (what && (r->protocols & (NETWORK_TCP | NETWORK_UDP)))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "`%s` cannot be checked in tcp and udp: protocol: tls or http",
			       what);
	if (row->intercept == BOOL_TRUE && !(r->protocols & NETWORK_TLS))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "`intercept` belongs to the protocol tls");
	if (what && row->intercept == BOOL_FALSE && (r->protocols & NETWORK_TLS))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "`%s` of TLS can be checked only in what is intercepted: leave "
			       "`intercept: false` out",
			       what);
	return 0;
}

/* UDP has no name in it: the broker gives each name an address, of which there is one for a name.
 */
static int check_udp(const struct network_rule *r, struct pale_err *err)
{
	size_t ports = 0;

	if (r->deny || !(r->protocols & NETWORK_UDP))
		return 0;
	for (size_t i = 0; i < r->nports; i++)
		ports += (size_t)(r->ports[i].last - r->ports[i].first) + 1;
	if (r->host && *r->host == '*')
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "udp is for single hosts: name each instead of %s", QUOTED(r->host));
	if (!r->host && r->cidr->bits != (r->cidr->family == AF_INET ? 32 : 128))
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "udp is for single addresses: name each");
	if (ports > 8)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "a rule for udp has at most 8 ports, not %zu", ports);
	return 0;
}

/* Puts the rule behind those that allow, or at the end; takes it over. */
static int insert_rule(struct policy_network *n, struct network_rule *r, struct pale_err *err)
{
	size_t at = 0;

	if (n->nrules >= POLICY_MAX_RULES)
		return err_set(err, PALE_E_POLICY, "policy", 0, "network: more than %d rules",
			       POLICY_MAX_RULES);
	if (policy_grow(&n->rules, n->nrules, sizeof(*n->rules)) < 0)
		return err_nomem(err, "policy");
	while (at < n->nrules && (r->deny || !n->rules[at].deny))
		at++;
	memmove(&n->rules[at + 1], &n->rules[at], (n->nrules - at) * sizeof(*r));
	n->rules[at] = *r;
	*r = (struct network_rule){0};
	n->nrules++;
	return 0;
}

/* All of a rule but its ports and protocols. */
static int start_rule(const struct rule_row *row, bool deny, const struct option_place *at,
		      struct network_rule *r, struct pale_err *err)
{
	*r = (struct network_rule){.deny = deny,
				   .rate_bytes = row->rate_bytes,
				   .total_bytes = row->total_bytes,
				   .intercept = row->intercept == BOOL_TRUE};
	if (row->address) {
		r->cidr = calloc(1, sizeof(*r->cidr));
		if (!r->cidr)
			return err_nomem(err, "policy");
		if (network_cidr_parse(row->address, r->cidr) < 0)
			return err_set(err, PALE_E_POLICY, "policy", 0, "%s is not an address",
				       QUOTED(row->address));
	}
	if (copy_text(&r->host, row->host) < 0 || texts_copy(&r->methods, row->methods) < 0 ||
	    copy_text(&r->reason, row->reason) < 0 || copy_text(&r->preset, row->preset) < 0 ||
	    copy_text(&r->where, at->where) < 0)
		return err_nomem(err, "policy");
	for (size_t i = 0; row->paths && row->paths[i]; i++) {
		char glob[OPTION_TEXT_MAX];

		if (decode_glob(row->paths[i], glob) < 0)
			return err_set(err, PALE_E_POLICY, "policy", 0, "%s is not a path",
				       QUOTED(row->paths[i]));
		if (texts_add(&r->paths, glob) < 0)
			return err_nomem(err, "policy");
	}
	return 0;
}

static int finish_rule(struct policy_network *n, const struct rule_row *row, struct network_rule *r,
		       struct pale_err *err)
{
	int e = check_requests(row, r, err);

	if (e >= 0)
		e = check_udp(r, err);
	if (e < 0)
		return e;
	if (!r->deny && (r->methods || r->paths) && (r->protocols & NETWORK_TLS))
		r->intercept = true;
	return insert_rule(n, r, err);
}

/* Without a protocol: a rule for each protocol that the ports stand for, so that 443 and 80
 * together do not allow clear HTTP on 443. r is a rule that has the ports and no protocol. */
static int split_rule(struct policy_network *n, const struct rule_row *row,
		      const struct network_rule *r, struct pale_err *err)
{
	static const unsigned usual[] = {NETWORK_TLS, NETWORK_HTTP, NETWORK_TCP};

	for (size_t i = 0; i < r->nports; i++) {
		char text[16];

		if (usual_protocol(&r->ports[i]))
			continue;
		format_ports(&r->ports[i], text);
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "port %s needs `protocol`: tls, http, tcp or udp (only 443, 80 and "
			       "22 stand for one: tls, http and tcp)",
			       text);
	}
	for (size_t u = 0; u < ARRAY_SIZE(usual); u++) {
		struct network_rule part = {0};
		int e = network_rule_copy(&part, r);

		part.nports = 0;
		for (size_t i = 0; e >= 0 && i < r->nports; i++)
			if (usual_protocol(&r->ports[i]) == usual[u])
				part.ports[part.nports++] = r->ports[i];
		part.protocols = usual[u];
		if (e < 0)
			e = err_nomem(err, "policy");
		else if (part.nports)
			e = finish_rule(n, row, &part, err);
		network_rule_done(&part);
		if (e < 0)
			return e;
	}
	return 0;
}

int rule_append(struct policy *p, const struct rule_row *row, bool deny,
		const struct option_place *at, struct pale_err *err)
{
	_cleanup_(network_rule_done) struct network_rule r = {0};
	int e;

	if (!row->host && !row->address && row->preset && !deny && at->in_preset)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "a preset cannot be made of presets: write the rules");
	if (!row->host && !row->address && row->preset && !deny)
		return preset_append(p, row, at, err);
	if (!row->host && !row->address)
		return err_set(err, PALE_E_POLICY, "policy", 0, "`host` is missing%s",
			       deny ? " (or `address`)" : " (or `address`, or `preset`)");
	e = start_rule(row, deny, at, &r, err);
	if (e >= 0)
		e = read_ports(row, deny, &r, err);
	if (e < 0)
		return e;
	r.protocols = row->protocols;
	if (deny && !r.protocols)
		r.protocols = NETWORK_TLS | NETWORK_HTTP | NETWORK_TCP | NETWORK_UDP;
	/* TLS and HTTP are bytes over TCP, too. */
	if (deny && (r.protocols & NETWORK_TCP))
		r.protocols |= NETWORK_TLS | NETWORK_HTTP;
	return r.protocols ? finish_rule(&p->network, row, &r, err)
			   : split_rule(&p->network, row, &r, err);
}

/* ---- secrets ---- */

/* A file that the value is read from counts from the policy's directory. */
static int absolute_source(const char *source, const char *base, char **ret, struct pale_err *err)
{
	_cleanup_free_ char *path = NULL;
	int r;

	if (!str_starts(source, "file:")) {
		*ret = strdup(source);
		return *ret ? 0 : err_nomem(err, "policy");
	}
	r = path_absolute(&path, source + strlen("file:"), base, true, err);
	if (r < 0)
		return r;
	if (asprintf(ret, "file:%s", path) < 0) {
		*ret = NULL;
		return err_nomem(err, "policy");
	}
	return 0;
}

int secret_append(struct policy *p, const struct secret_row *row, const struct option_place *at,
		  struct pale_err *err)
{
	struct policy_network *n = &p->network;
	int places = !!row->header + !!row->query + (row->basic == BOOL_TRUE);
	struct network_secret s = {0};
	int r = 0;

	if (n->nsecrets >= POLICY_MAX_SECRETS)
		return err_set(err, PALE_E_POLICY, "policy", 0, "network: more than %d secrets",
			       POLICY_MAX_SECRETS);
	if (!row->env && !row->file)
		return err_set(
			err, PALE_E_POLICY, "policy", 0,
			"`env` is missing (or `file`): where the code finds the placeholder");
	if (!row->hosts)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "`hosts` is missing: who may be sent the secret");
	if (places != 1)
		return err_set(err, PALE_E_POLICY, "policy", 0,
			       "one of `header`, `query` and `basic: true` says where the secret "
			       "goes%s",
			       places ? ", not several" : "");
	s.place = row->header ? SECRET_HEADER : row->query ? SECRET_QUERY : SECRET_BASIC;
	if (row->file)
		r = path_absolute(&s.file, row->file, "/", false, err);
	if (r >= 0 && row->file && *row->file != '/')
		r = err_set(err, PALE_E_POLICY, "policy", 0,
			    "%s: `file` is a path in the box: absolute", QUOTED(row->file));
	if (r >= 0 && s.file)
		r = path_check_target(s.file, ACCESS_READ, err);
	if (r >= 0)
		r = absolute_source(row->value_from, at->base, &s.value_from, err);
	if (r >= 0 && (copy_text(&s.env, row->env) < 0 || texts_copy(&s.hosts, row->hosts) < 0 ||
		       copy_text(&s.name, row->header ? row->header : row->query) < 0 ||
		       copy_text(&s.where, at->where) < 0 ||
		       policy_grow(&n->secrets, n->nsecrets, sizeof(*n->secrets)) < 0))
		r = err_nomem(err, "policy");
	if (r < 0) {
		network_secret_done(&s);
		return r;
	}
	n->secrets[n->nsecrets++] = s;
	return 0;
}
