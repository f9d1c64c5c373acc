/* DNS messages: see dns_wire.h. Runs in the broker. Every byte of a query is hostile: lengths are
 * checked against the message's end before anything is read, and compression is refused in
 * questions (no asker uses it there), so that there is no pointer to follow. */
#include "egress/dns_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEADER	    12
#define CLASS_IN    1
#define CLASS_ANY   255
#define FLAG_QR	    0x8000
#define FLAG_RD	    0x0100
#define FLAG_RA	    0x0080
#define OPCODE(f)   (((f) >> 11) & 0xf)
#define UDP_DEFAULT 512
#define UDP_OURS    DNS_ANSWER_MAX
#define RECORDS_MAX 32 /* of the sections behind the question, when looking for OPT */

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static bool host_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/* The name at *at: its text, and *at behind it. */
static int parse_name(const uint8_t *data, size_t len, size_t *at, char *text)
{
	size_t start = *at, out = 0;

	for (;;) {
		uint8_t label;

		if (*at >= len)
			return -EINVAL;
		label = data[(*at)++];
		if (label == 0)
			break;
		if (label > 63 || label > len - *at || *at + label - start > DNS_NAME_MAX - 1)
			return -EINVAL;
		if (out)
			text[out++] = '.';
		for (uint8_t i = 0; i < label; i++) {
			uint8_t c = data[*at + i];

			text[out++] = host_byte(c) ? (char)c : '?';
		}
		*at += label;
	}
	text[out] = '\0';
	return 0;
}

/* Behind a record's name, which may end in a pointer. */
static int skip_name(const uint8_t *data, size_t len, size_t *at)
{
	for (;;) {
		uint8_t label;

		if (*at >= len)
			return -EINVAL;
		label = data[(*at)++];
		if (label == 0)
			return 0;
		if ((label & 0xc0) == 0xc0) {
			if (*at >= len)
				return -EINVAL;
			(*at)++;
			return 0;
		}
		if (label > 63 || label > len - *at)
			return -EINVAL;
		*at += label;
	}
}

/* Looks for OPT among the records behind the question. */
static int parse_edns(const uint8_t *data, size_t len, size_t at, unsigned records,
		      struct dns_query *q)
{
	if (records > RECORDS_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < records; i++) {
		size_t name_at = at;
		uint16_t type, size, rdlen;

		if (skip_name(data, len, &at) < 0 || len - at < 10)
			return -EINVAL;
		type = get16(data + at);
		size = get16(data + at + 2);
		rdlen = get16(data + at + 8);
		if (rdlen > len - at - 10)
			return -EINVAL;
		if (type == DNS_OPT) {
			if (q->edns || data[name_at] != 0) /* one only, and of the root */
				return -EINVAL;
			q->edns = true;
			q->udp_bytes = size < UDP_DEFAULT ? UDP_DEFAULT : size;
			if (data[at + 5] != 0)
				q->code = DNS_BADVERS;
		}
		at += 10u + rdlen;
	}
	return 0;
}

int dns_parse(const uint8_t *data, size_t len, struct dns_query *q)
{
	uint16_t flags;
	size_t at = HEADER;

	memset(q, 0, sizeof(*q));
	if (len < HEADER || len > DNS_QUERY_MAX)
		return -EINVAL;
	flags = get16(data + 2);
	if (flags & FLAG_QR)
		return -EINVAL;
	q->id = get16(data);
	q->recursion = flags & FLAG_RD;
	q->opcode = OPCODE(flags);
	q->udp_bytes = UDP_DEFAULT;
	if (q->opcode != 0) {
		q->code = DNS_NOTIMP;
		return 0;
	}
	if (get16(data + 4) != 1 || parse_name(data, len, &at, q->name) < 0 || len - at < 4) {
		q->name[0] = '\0';
		q->code = DNS_FORMERR;
		return 0;
	}
	q->type = get16(data + at);
	q->question_len = (uint16_t)(at + 4 - HEADER);
	memcpy(q->question, data + HEADER, q->question_len);
	uint16_t class = get16(data + at + 2);

	if (parse_edns(data, len, at + 4,
		       (unsigned)get16(data + 6) + get16(data + 8) + get16(data + 10), q) < 0)
		q->code = DNS_FORMERR;
	else if (q->code == DNS_OK && class != CLASS_IN && class != CLASS_ANY)
		q->code = DNS_REFUSED;
	return 0;
}

void dns_begin(struct dns_answer *a, const struct dns_query *q)
{
	memset(a->data, 0, HEADER);
	a->len = HEADER;
	a->records = 0;
	memcpy(a->data + a->len, q->question, q->question_len);
	a->len += q->question_len;
}

/* A record of the question's name (a pointer to it). */
static void add_record(struct dns_answer *a, uint16_t type, uint32_t ttl_s, const void *data,
		       size_t len)
{
	uint8_t *p = a->data + a->len;

	/* Room is kept for SOA and OPT. */
	if (a->len + 12 + len > sizeof(a->data) - 64)
		return;
	put16(p, 0xc000 | HEADER);
	put16(p + 2, type);
	put16(p + 4, CLASS_IN);
	put16(p + 6, ttl_s >> 16);
	put16(p + 8, ttl_s & 0xffff);
	put16(p + 10, (unsigned)len);
	memcpy(p + 12, data, len);
	a->len += 12 + len;
}

void dns_add_a(struct dns_answer *a, const struct in_addr *address, uint32_t ttl_s)
{
	add_record(a, DNS_A, ttl_s, address, 4);
	a->records++;
}

void dns_add_aaaa(struct dns_answer *a, const struct in6_addr *address, uint32_t ttl_s)
{
	add_record(a, DNS_AAAA, ttl_s, address, 16);
	a->records++;
}

void dns_add_ptr(struct dns_answer *a, const char *name, uint32_t ttl_s)
{
	uint8_t wire[DNS_NAME_MAX + 1];
	size_t out = 0;

	while (*name) {
		size_t label = strcspn(name, ".");

		if (label == 0 || label > 63 || out + label + 2 > sizeof(wire))
			return;
		wire[out++] = (uint8_t)label;
		memcpy(wire + out, name, label);
		out += label;
		name += label;
		name += *name == '.';
	}
	wire[out++] = 0;
	add_record(a, DNS_PTR, ttl_s, wire, out);
	a->records++;
}

static void add_soa(struct dns_answer *a, uint32_t ttl_s)
{
	/* Of the name that was asked for itself: a resolver needs some zone to remember it by. */
	uint8_t soa[2 + 20] = {0};

	put16(soa + 2 + 18, ttl_s & 0xffff); /* names: the root twice; serial and times: 0 */
	put16(soa + 2 + 16, ttl_s >> 16);
	uint8_t *p = a->data + a->len;

	if (a->len + 12 + sizeof(soa) > sizeof(a->data) - 16)
		return;
	put16(p, 0xc000 | HEADER);
	put16(p + 2, DNS_SOA);
	put16(p + 4, CLASS_IN);
	put16(p + 6, ttl_s >> 16);
	put16(p + 8, ttl_s & 0xffff);
	put16(p + 10, sizeof(soa));
	memcpy(p + 12, soa, sizeof(soa));
	a->len += 12 + sizeof(soa);
	a->soa = true;
}

void dns_finish(struct dns_answer *a, const struct dns_query *q, enum dns_code code,
		uint32_t negative_ttl_s)
{
	unsigned flags = FLAG_QR | (unsigned)q->opcode << 11 | FLAG_RA |
			 (q->recursion ? FLAG_RD : 0) | ((unsigned)code & 0xf);
	unsigned additional = 0;

	a->soa = false;
	if (q->question_len && a->records == 0 && (code == DNS_OK || code == DNS_NXDOMAIN))
		add_soa(a, negative_ttl_s);
	if (q->edns && a->len + 11 <= sizeof(a->data)) {
		uint8_t *p = a->data + a->len;

		memset(p, 0, 11);
		put16(p + 1, DNS_OPT);
		put16(p + 3, UDP_OURS);
		p[5] = (uint8_t)((unsigned)code >> 4);
		a->len += 11;
		additional = 1;
	}
	put16(a->data, q->id);
	put16(a->data + 2, flags);
	put16(a->data + 4, q->question_len ? 1 : 0);
	put16(a->data + 6, a->records);
	put16(a->data + 8, a->soa ? 1 : 0);
	put16(a->data + 10, additional);
}

static bool reverse4(const char *name, size_t len, struct in6_addr *ret)
{
	unsigned parts[4];
	const char *p = name;

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < 4; i++) {
		char *end;

		if (*p < '0' || *p > '9')
			return false;
		unsigned long v = strtoul(p, &end, 10);

		if (end - p > 3 || v > 255)
			return false;
		parts[i] = (unsigned)v;
		p = end;
		if (i < 3 && *p++ != '.')
			return false;
	}
	if (p != name + len)
		return false;
	for (int i = 0; i < 4; i++)
		ret->s6_addr[i] = (uint8_t)parts[3 - i];
	return true;
}

static int nibble(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static bool reverse6(const char *name, size_t len, struct in6_addr *ret)
{
	if (len != 63)
		return false;
	for (int i = 0; i < 32; i++) {
		int v = nibble(name[2 * i]);
		int at = 31 - i;

		if (v < 0 || (i < 31 && name[2 * i + 1] != '.'))
			return false;
		if (at % 2)
			ret->s6_addr[at / 2] = (uint8_t)v;
		else
			ret->s6_addr[at / 2] = (uint8_t)(ret->s6_addr[at / 2] | v << 4);
	}
	return true;
}

bool dns_reverse(const char *name, int *ret_family, struct in6_addr *ret)
{
	static const char zone4[] = ".in-addr.arpa", zone6[] = ".ip6.arpa";
	size_t len = strlen(name);

	if (len > sizeof(zone4) - 1 && strcasecmp(name + len - (sizeof(zone4) - 1), zone4) == 0) {
		*ret_family = AF_INET;
		return reverse4(name, len - (sizeof(zone4) - 1), ret);
	}
	if (len > sizeof(zone6) - 1 && strcasecmp(name + len - (sizeof(zone6) - 1), zone6) == 0) {
		*ret_family = AF_INET6;
		return reverse6(name, len - (sizeof(zone6) - 1), ret);
	}
	return false;
}
