/* Finds any of a set of byte strings in a stream: see search.h.
 *
 * Process: the broker, confined. Hostile: the stream. The needles come from the policy's owner; the
 * table that is made of them holds secrets and is wiped. */
#include "egress/http/search.h"

#include <string.h>

/* A complete table (state, class of byte) -> state, so that a byte costs one look-up whatever
 * stands there: a stream can't be made expensive. Bytes that no needle holds share one class. */
struct search {
	uint8_t class[256];
	unsigned nclasses, nstates;
	uint16_t *next;	 /* [nstates * nclasses] */
	uint16_t *depth; /* of a state: length of the prefix that it stands for */
	uint16_t *found; /* 1 + the longest needle that ends here; 0: none */
	size_t next_bytes;
};

static void classify(struct search *s, const struct search_needle *needles, size_t n)
{
	s->nclasses = 1;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < needles[i].len; k++) {
			uint8_t *c = &s->class[(unsigned char)needles[i].text[k]];

			/* If needles hold every byte there is, the last has class 0 for itself. */
			if (*c == 0 && s->nclasses < 256)
				*c = (uint8_t)s->nclasses++;
		}
}

static uint16_t *edge(const struct search *s, unsigned state, unsigned char byte)
{
	return &s->next[(size_t)state * s->nclasses + s->class[byte]];
}

/* Fail links, breadth first; edges that are missing become those of the fail state. */
static int complete(struct search *s)
{
	_cleanup_free_ uint16_t *fail = calloc(s->nstates, sizeof(*fail));
	_cleanup_free_ uint16_t *queue = calloc(s->nstates, sizeof(*queue));
	size_t head = 0, tail = 0;

	if (!fail || !queue)
		return -ENOMEM;
	for (unsigned c = 0; c < s->nclasses; c++)
		if (s->next[c])
			queue[tail++] = s->next[c];
	while (head < tail) {
		unsigned from = queue[head++];

		if (s->found[from] == 0)
			s->found[from] = s->found[fail[from]];
		for (unsigned c = 0; c < s->nclasses; c++) {
			uint16_t *to = &s->next[(size_t)from * s->nclasses + c];
			uint16_t past = s->next[(size_t)fail[from] * s->nclasses + c];

			if (*to) {
				fail[*to] = past;
				queue[tail++] = *to;
			} else {
				*to = past;
			}
		}
	}
	return 0;
}

int search_new(const struct search_needle *needles, size_t n, struct search **ret)
{
	struct search *s = calloc(1, sizeof(*s));
	size_t total = 1;
	int r = -ENOMEM;

	*ret = NULL;
	if (!s)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		total += needles[i].len;
	if (total > UINT16_MAX) {
		search_free(s);
		return -E2BIG;
	}
	classify(s, needles, n);
	s->next_bytes = total * s->nclasses * sizeof(*s->next);
	s->next = calloc(1, s->next_bytes);
	s->depth = calloc(total, sizeof(*s->depth));
	s->found = calloc(total, sizeof(*s->found));
	s->nstates = 1;
	if (s->next && s->depth && s->found) {
		for (size_t i = 0; i < n; i++) {
			unsigned at = 0;

			for (size_t k = 0; k < needles[i].len; k++) {
				uint16_t *to = edge(s, at, (unsigned char)needles[i].text[k]);

				if (*to == 0) {
					s->depth[s->nstates] = (uint16_t)(k + 1);
					*to = (uint16_t)s->nstates++;
				}
				at = *to;
			}
			s->found[at] = (uint16_t)(i + 1);
		}
		r = complete(s);
	}
	if (r < 0) {
		search_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void search_free(struct search *s)
{
	if (!s)
		return;
	if (s->next)
		explicit_bzero(s->next, s->next_bytes);
	explicit_bzero(s->class, sizeof(s->class));
	free(s->next);
	free(s->depth);
	free(s->found);
	free(s);
}

size_t search_next(const struct search *s, uint32_t *state, const void *data, size_t len,
		   size_t *at)
{
	const unsigned char *p = data;
	uint32_t st = *state;
	size_t i = *at, found = 0;

	while (i < len) {
		st = s->next[(size_t)st * s->nclasses + s->class[p[i++]]];
		found = s->found[st];
		if (found)
			break;
	}
	*state = st;
	*at = i;
	return found;
}

size_t search_pending(const struct search *s, uint32_t state)
{
	return s->depth[state];
}

size_t search_ended(const struct search *s, uint32_t state)
{
	return s->found[state];
}

size_t search_finds(const struct search *s, const void *data, size_t len)
{
	uint32_t state = 0;
	size_t at = 0;

	return search_next(s, &state, data, len, &at);
}
