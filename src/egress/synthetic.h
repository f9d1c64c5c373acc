/* The addresses inside that stand for names: one each, of both families.
 *
 * A flow to such an address carries its name before the first byte. The table is bounded; the name
 * that was used least recently makes room for a new one, but never while a flow holds it, and its
 * address is not given out again before all others were. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "policy/network.h"

#define SYNTHETIC_MAX 4096

struct synthetic;
struct synthetic_name {
	TAILQ_ENTRY(synthetic_name) entry; /* the least recently used first */
	unsigned holds;
	uint16_t index; /* the last 16 bits of both addresses */
	bool udp;	/* udp.c has ports open for it */
	struct synthetic_name *next_by_name, *next_by_index;
	char host[NETWORK_HOST_MAX + 1];
};

int synthetic_new(struct synthetic **ret) _must_check_;
void synthetic_free(struct synthetic *s);

/* host is normalised. NULL: no memory, or every name is held by a flow. */
struct synthetic_name *synthetic_get(struct synthetic *s, const char *host);
/* By address (AF_INET: struct in_addr, AF_INET6: struct in6_addr); NULL: stands for no name (any
 * more). */
struct synthetic_name *synthetic_find(struct synthetic *s, int family, const void *address);
/* Is it of the range at all? */
bool synthetic_is(int family, const void *address);
void synthetic_address4(const struct synthetic_name *n, struct in_addr *ret);
void synthetic_address6(const struct synthetic_name *n, struct in6_addr *ret);

void synthetic_hold(struct synthetic_name *n);
void synthetic_release(struct synthetic_name *n); /* NULL is nothing */
size_t synthetic_count(const struct synthetic *s);
