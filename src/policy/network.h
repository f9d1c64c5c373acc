/* What of the network a policy allows: rules by host or address, secrets, and what is let in.
 *
 * A connection is allowed if a rule without `deny` covers it and none with `deny` does. A rule
 * covers a host (exact, or "*." and a suffix on label boundaries) or an address range, on its
 * ports, in its protocols; one that names methods or paths covers those requests only.
 *
 * The host names, paths and addresses that are asked about come from the box and are hostile: a
 * name goes through network_host_normalise() and a path through network_path_normalise() once,
 * where it comes in, and everything else compares what these gave. Nothing here allocates but
 * network_copy(). */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Bits; a rule may have several. */
enum network_protocol {
	NETWORK_TLS = 1 << 0,  /* a TLS hello whose name is the host's; anything within, unless the
				  rule  implies interception */
	NETWORK_HTTP = 1 << 1, /* HTTP/1 in clear; each request is checked */
	NETWORK_TCP = 1 << 2,  /* any bytes */
	NETWORK_UDP = 1 << 3,
};

struct network_range {
	uint16_t first, last;
};

struct network_cidr {
	int family;		 /* AF_INET, AF_INET6 */
	struct in6_addr address; /* AF_INET: in the first four bytes */
	unsigned bits;
};

struct network_rule {
	char *host; /* normalised (network_host_normalise()), maybe with "*." before; or NULL */
	/* Without a host: the addresses that it covers. With one: where its addresses have to lie,
	 * and then they may be private ones. Or NULL. */
	struct network_cidr *cidr;
	bool deny;	    /* rules that deny come after all that allow */
	unsigned protocols; /* enum network_protocol; never 0 */
	struct network_range *ports;
	size_t nports;	/* never 0 */
	char **methods; /* upper case; NULL-terminated; NULL: any; with them and with paths there
			   is a host, or it is a rule that allows http */
	char **paths;	/* globs: `*` within a segment, `**` across; NULL: any */
	bool intercept; /* TLS is opened and each request checked; also set for methods and
			   paths; secrets are not looked at here: network_intercepts() */
	uint64_t rate_bytes;  /* a second, both ways together; 0: no cap */
	uint64_t total_bytes; /* of the whole run; 0: no cap */
	char *reason; /* shown to the program that is refused by this rule (deny), or NULL */
	char *preset; /* the preset that it comes from, or NULL */
	char *where;  /* "policy.yaml:7:5" or "--allow" */
};

/* How a secret is put into a request. */
enum network_secret_place { SECRET_HEADER, SECRET_QUERY, SECRET_BASIC };

struct network_secret {
	char *env;	  /* the variable in the box that holds the placeholder, or NULL */
	char *file;	  /* the file in the box that holds it, absolute, or NULL */
	char *value_from; /* "env:NAME", "file:PATH", "command:SHELL LINE", "fd:N" */
	char **hosts;	  /* as in rules; NULL-terminated; at least one */
	enum network_secret_place place;
	char *name; /* of the header or the query field; NULL for basic */
	char *where;
};

/* Ports of the box that are Pale's own: for programs that use a proxy, for names, and where the
 * connections of all others arrive. */
#define NETWORK_PROXY_PORT 3128
#define NETWORK_DNS_PORT   53
#define NETWORK_TCP_PORT   61053

/* Addresses in the box: its own, and those that stand for names. */
#define NETWORK_OWN4	   "10.0.2.100"
#define NETWORK_OWN6	   "fd00:2::100"
#define NETWORK_SYNTHETIC4 "198.18.0.0" /* /16 */
#define NETWORK_SYNTHETIC6 "fd5b:ad::"	/* /112 */

struct network_publish {
	uint16_t port;	    /* in the box, on loopback */
	uint16_t host_port; /* on the host's loopback; 0 with path NULL: any free one, told in the
			       result */
	char *path;	    /* a Unix socket on the host instead; absolute; or NULL */
	char *where;
};

struct policy_network {
	struct network_rule *rules; /* allow, then deny; presets are already rules */
	size_t nrules;
	struct network_secret *secrets;
	size_t nsecrets;
	char **exempt;	 /* hosts whose TLS is never opened; as in rules; NULL-terminated or NULL */
	char **extra_ca; /* host paths of PEM files that upstream servers may be verified with, or
			    NULL */
	struct network_publish *publish;
	size_t npublish;
	char **ssh_agent_hosts; /* hosts for which the caller's ssh agent may sign, or NULL */
	uint64_t rate_bytes;	/* the whole box, a second; 0: no cap */
	uint64_t total_bytes;	/* the whole box and run; 0: no cap */
	uint64_t connections;	/* open at a time */
};

/* Is there anything for which the box needs more than loopback? */
bool network_wanted(const struct policy_network *n);

void network_done(struct policy_network *n);
/* Into a zeroed one. 0, or -ENOMEM: *ret is then empty. */
int network_copy(struct policy_network *ret, const struct policy_network *from) _must_check_;
void network_rule_done(struct network_rule *r);
void network_secret_done(struct network_secret *s);
bool network_rule_has_port(const struct network_rule *r, uint16_t port);
int network_rule_copy(struct network_rule *ret, const struct network_rule *from) _must_check_;

/* A rule in one line, for people, logs and refusals: "allow tls *.example.org:443 GET /v1/..".
 * Returns out. */
#define NETWORK_RULE_TEXT 160
const char *network_rule_text(const struct network_rule *r, char out[static NETWORK_RULE_TEXT]);

#define NETWORK_HOST_MAX 253

/* A host name as it is compared: lower case, no trailing dot, IDN as punycode if it is ASCII
 * already. Everything that comes from the box goes through here once, before anything is compared.
 * -EINVAL: empty, too long, an empty or over-long label, or any byte but letters, digits, `-` and
 * `_` (so NUL, controls, blanks and non-ASCII are refused). Also refuses what is an address in any
 * notation that inet_aton() takes (decimal, hex, octal), so that a name is never dialled as an
 * address. */
int network_host_normalise(const char *name, size_t len,
			   char ret[static NETWORK_HOST_MAX + 1]) _must_check_;
/* The same for a rule's host, which may have "*." before it. */
int network_pattern_normalise(const char *text, char ret[static NETWORK_HOST_MAX + 3]) _must_check_;
/* pattern: exact, or "*.suffix", which covers labels before the suffix but not the suffix itself.
 */
bool network_host_matches(const char *pattern, const char *host);
/* Does the one pattern cover all that the other does? */
bool network_pattern_covers(const char *pattern, const char *other);

/* "192.0.2.1", "10.0.0.0/8", "fd00::/8": the numbers in their usual form only (no octal, no short
 * form), no bit set beyond the prefix. 0 or -EINVAL. */
int network_cidr_parse(const char *text, struct network_cidr *ret) _must_check_;
#define NETWORK_CIDR_TEXT (INET6_ADDRSTRLEN + 4)
const char *network_cidr_format(const struct network_cidr *c, char out[static NETWORK_CIDR_TEXT]);
/* A v4-mapped address is in the range of the IPv4 address that it holds. */
bool network_cidr_contains(const struct network_cidr *c, int family, const void *address);
/* Contains it, or an IPv4 address within it (NAT64, 6to4, Teredo, ISATAP): for rules that deny. */
bool network_cidr_reaches(const struct network_cidr *c, int family, const void *address);

/* `*`: any bytes but `/`, `**`: any bytes; all else is itself. Upper and lower case differ. */
bool network_glob_matches(const char *glob, const char *path);

/* The path of a request as it is compared with a rule's paths: percent-encoded bytes are decoded.
 * Refuses (-EINVAL, and why in *ret_why) what servers read in different ways, so that a rule would
 * say one thing and the server do another: "." and ".." segments, encoded or not, empty segments
 * (but the last), encoded slashes and backslashes, `;`, controls, NUL, broken or double encoding,
 * and what does not begin with "/". -ENAMETOOLONG: over size. path is without the query. Called by
 * the HTTP engine for hosts for which network_has_paths(); the request goes on as it was written,
 * which then means the same. */
#define NETWORK_PATH_MAX 8192
int network_path_normalise(const char *path, size_t len, char *ret, size_t size,
			   const char **ret_why) _must_check_;

/* What is asked. Exactly one of host (normalised) and address is given. method and path: NULL where
 * there is no request (yet). */
struct network_question {
	const char *host;
	int family;
	const void *address;
	uint16_t port;			/* host order; 0: any (a name lookup) */
	enum network_protocol protocol; /* 0: any */
	const char *method, *path;	/* path: normalised, or any text if no rule for this
					   host has paths (network_has_paths()) */
};

struct network_answer {
	bool allowed;
	int rule;   /* the index of the rule that decided; -1: none covers it */
	bool named; /* some rule names this host (or address), if not on this port, protocol or
		       request */
};

/* Deny rules win; among the allowing ones the first that covers it decides. With port, protocol,
 * method or path left out, an allowing rule covers whatever it may be, and a deny rule that is
 * restricted in what was left out does not yet decide. */
struct network_answer network_ask(const struct policy_network *n, const struct network_question *q);
/* Must the requests of a TLS connection to this host and port be seen: a rule with intercept,
 * methods or paths, or a secret, and no exemption? */
bool network_intercepts(const struct policy_network *n, const char *host, uint16_t port);
/* Can there be such a connection at all? Else no certificate and no trust store are needed. */
bool network_may_intercept(const struct policy_network *n);
/* Does any rule for this host look at paths? */
bool network_has_paths(const struct policy_network *n, const char *host);
/* Is this a host whose requests the secret may be put into? */
bool network_secret_for(const struct network_secret *s, const char *host);

/* May an address be dialled for a name that a rule allows: not loopback, link-local, metadata,
 * multicast, private, CGNAT, ULA, benchmark or reserved, nor such a one within v4-mapped, NAT64,
 * 6to4 or Teredo, unless a rule's cidr names it. The host's own addresses are checked by the
 * broker. */
bool network_address_public(int family, const void *address);
/* An address that the broker is about to dial for what rule `rule` (network_answer.rule) allows. */
struct network_dial {
	int rule;
	const char *host; /* whose address it is; NULL: the address itself was asked for */
	int family;
	const void *address;
	uint16_t port;
	enum network_protocol protocol;
};

/* The narrowest range by which a rule names this address: the rule's own, that of another one by
 * which such a connection to the host may be made, or, unless all of these say where the host's
 * addresses lie (*ret_bound), that of a rule for addresses on this port. NULL: none. */
const struct network_cidr *network_named_by(const struct policy_network *n,
					    const struct network_dial *d, bool *ret_bound);
/* May it be dialled? If it is named, or, unless the host is bound to ranges, public; never if a
 * rule that denies covers it. */
bool network_may_dial(const struct policy_network *n, const struct network_dial *d);
