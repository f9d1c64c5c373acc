/* DNS messages (RFC 1035, 6891, 8482): queries taken apart, answers put together. No sockets. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define DNS_QUERY_MAX  1232 /* longer ones are not looked at */
#define DNS_ANSWER_MAX 1232
#define DNS_NAME_MAX   255 /* of a name on the wire */

enum dns_type {
	DNS_A = 1,
	DNS_NS = 2,
	DNS_SOA = 6,
	DNS_PTR = 12,
	DNS_AAAA = 28,
	DNS_OPT = 41,
	DNS_ANY = 255,
};

enum dns_code {
	DNS_OK = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16,
};

struct dns_query {
	uint16_t id;
	uint8_t opcode;
	bool recursion; /* desired */
	bool edns;
	uint16_t udp_bytes; /* what the asker takes; at least 512 */
	enum dns_code code; /* DNS_OK, or what is wrong with it: answer that */
	uint16_t type;
	uint16_t question_len; /* 0: there is none to repeat */
	uint8_t question[DNS_NAME_MAX + 4];
	/* The name as text, with dots between the labels and none at the end; a byte that is not of
	 * a host name, and a dot within a label, stand there as '?', so that it matches nothing. */
	char name[DNS_NAME_MAX + 1];
};

/* 0: *ret can be answered (perhaps only with an error code). -EINVAL: not a query; say nothing. */
int dns_parse(const uint8_t *data, size_t len, struct dns_query *ret) _must_check_;

/* Puts an answer together. Every answer is authoritative-looking for a resolver: RA set. */
struct dns_answer {
	uint8_t data[DNS_ANSWER_MAX];
	size_t len;
	uint16_t records; /* in the answer section */
	bool soa;	  /* a negative answer; dns_finish() adds the SOA */
};
void dns_begin(struct dns_answer *a, const struct dns_query *q);
void dns_add_a(struct dns_answer *a, const struct in_addr *address, uint32_t ttl_s);
void dns_add_aaaa(struct dns_answer *a, const struct in6_addr *address, uint32_t ttl_s);
void dns_add_ptr(struct dns_answer *a, const char *name, uint32_t ttl_s);
/* Fills in the header; a negative answer (NXDOMAIN, or no record) gets an SOA with this many
 * seconds to be remembered. */
void dns_finish(struct dns_answer *a, const struct dns_query *q, enum dns_code code,
		uint32_t negative_ttl_s);

/* The address that a name below in-addr.arpa or ip6.arpa is the reverse of; false: it is none. */
bool dns_reverse(const char *name, int *ret_family, struct in6_addr *ret);
