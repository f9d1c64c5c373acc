/* Addresses that stand for names: see synthetic.h. Runs in the broker. The names come from the box
 * and have been normalised; how many there are is up to the box, hence the bound. */
#include "egress/synthetic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "egress/wire.h"

#define BUCKETS	    4096 /* a power of two */
/* The first and the last address of the range look like a network's own and broadcast. */
#define INDEX_FIRST 1
#define INDEX_LAST  65534

TAILQ_HEAD(names, synthetic_name);

struct synthetic {
	struct names all;
	size_t count;
	uint16_t next; /* index to try next */
	struct synthetic_name *by_name[BUCKETS], *by_index[BUCKETS];
};

static unsigned name_bucket(const char *host)
{
	uint32_t h = 2166136261u;

	for (; *host; host++)
		h = (h ^ (unsigned char)*host) * 16777619u;
	return h % BUCKETS;
}

int synthetic_new(struct synthetic **ret)
{
	struct synthetic *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	TAILQ_INIT(&s->all);
	s->next = INDEX_FIRST;
	*ret = s;
	return 0;
}

void synthetic_free(struct synthetic *s)
{
	if (!s)
		return;
	while (!TAILQ_EMPTY(&s->all)) {
		struct synthetic_name *n = TAILQ_FIRST(&s->all);

		TAILQ_REMOVE(&s->all, n, entry);
		free(n);
	}
	free(s);
}

static struct synthetic_name *by_index(struct synthetic *s, uint16_t index)
{
	struct synthetic_name *n = s->by_index[index % BUCKETS];

	while (n && n->index != index)
		n = n->next_by_index;
	return n;
}

static void touch(struct synthetic *s, struct synthetic_name *n)
{
	TAILQ_REMOVE(&s->all, n, entry);
	TAILQ_INSERT_TAIL(&s->all, n, entry);
}

static void drop(struct synthetic *s, struct synthetic_name *n)
{
	struct synthetic_name **p = &s->by_name[name_bucket(n->host)];

	while (*p != n)
		p = &(*p)->next_by_name;
	*p = n->next_by_name;
	p = &s->by_index[n->index % BUCKETS];
	while (*p != n)
		p = &(*p)->next_by_index;
	*p = n->next_by_index;
	TAILQ_REMOVE(&s->all, n, entry);
	s->count--;
	free(n);
}

static bool make_room(struct synthetic *s)
{
	struct synthetic_name *n;

	if (s->count < SYNTHETIC_MAX)
		return true;
	TAILQ_FOREACH(n, &s->all, entry)
	if (!n->holds && !n->udp) {
		drop(s, n);
		return true;
	}
	return false;
}

struct synthetic_name *synthetic_get(struct synthetic *s, const char *host)
{
	unsigned bucket = name_bucket(host);
	size_t len = strlen(host);
	struct synthetic_name *n;

	for (n = s->by_name[bucket]; n; n = n->next_by_name)
		if (strcmp(n->host, host) == 0) {
			touch(s, n);
			return n;
		}
	if (len > NETWORK_HOST_MAX || !make_room(s))
		return NULL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	memcpy(n->host, host, len + 1);
	/* There are far more addresses than names. */
	while (by_index(s, s->next))
		s->next = s->next == INDEX_LAST ? INDEX_FIRST : (uint16_t)(s->next + 1);
	n->index = s->next;
	s->next = s->next == INDEX_LAST ? INDEX_FIRST : (uint16_t)(s->next + 1);
	n->next_by_name = s->by_name[bucket];
	s->by_name[bucket] = n;
	n->next_by_index = s->by_index[n->index % BUCKETS];
	s->by_index[n->index % BUCKETS] = n;
	TAILQ_INSERT_TAIL(&s->all, n, entry);
	s->count++;
	return n;
}

static void base4(struct in_addr *ret)
{
	inet_pton(AF_INET, EGRESS_SYNTHETIC4, ret);
}

static void base6(struct in6_addr *ret)
{
	inet_pton(AF_INET6, EGRESS_SYNTHETIC6, ret);
}

bool synthetic_is(int family, const void *address)
{
	if (family == AF_INET) {
		struct in_addr base, a;

		base4(&base);
		memcpy(&a, address, sizeof(a));
		return (ntohl(a.s_addr) ^ ntohl(base.s_addr)) <= 0xffff;
	}

	struct in6_addr base;

	base6(&base);
	return memcmp(&base, address, 14) == 0;
}

struct synthetic_name *synthetic_find(struct synthetic *s, int family, const void *address)
{
	const unsigned char *bytes = address;
	struct synthetic_name *n;

	if (!synthetic_is(family, address))
		return NULL;
	bytes += family == AF_INET ? 2 : 14;
	n = by_index(s, (uint16_t)(bytes[0] << 8 | bytes[1]));
	if (n)
		touch(s, n);
	return n;
}

void synthetic_address4(const struct synthetic_name *n, struct in_addr *ret)
{
	base4(ret);
	ret->s_addr |= htonl(n->index);
}

void synthetic_address6(const struct synthetic_name *n, struct in6_addr *ret)
{
	base6(ret);
	ret->s6_addr[14] = (uint8_t)(n->index >> 8);
	ret->s6_addr[15] = (uint8_t)n->index;
}

void synthetic_hold(struct synthetic_name *n)
{
	n->holds++;
}

void synthetic_release(struct synthetic_name *n)
{
	if (n)
		n->holds--;
}

size_t synthetic_count(const struct synthetic *s)
{
	return s->count;
}
