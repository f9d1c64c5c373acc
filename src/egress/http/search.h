/* Finds any of a set of byte strings in a stream, in one pass and with a state of one number
 * (Aho-Corasick), so that what is cut by chunk boundaries is found too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct search;

struct search_needle {
	const char *text; /* any bytes */
	size_t len;	  /* not 0 */
};

/* Copies. -E2BIG: more than 65534 bytes in all; -ENOMEM. No needles at all is fine. */
int search_new(const struct search_needle *needles, size_t n, struct search **ret) _must_check_;
void search_free(struct search *s); /* wipes */

/* Goes on in *state (0 at the start of a stream) from data[*at]: 1 + the index of the longest
 * needle that ends there, and *at is after it; 0: none up to the end. */
size_t search_next(const struct search *s, uint32_t *state, const void *data, size_t len,
		   size_t *at);
/* How many of the last bytes could be the beginning of a needle. */
size_t search_pending(const struct search *s, uint32_t state);
/* As search_next() said when it came to this state. */
size_t search_ended(const struct search *s, uint32_t state);
/* In one piece; as search_next(). */
size_t search_finds(const struct search *s, const void *data, size_t len);
