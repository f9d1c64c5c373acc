/* The head of one HTTP message (or its trailers) in memory: what HTTP/1.1 and HTTP/2 come down to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define HEAD_MAX_BYTES	(64u << 10) /* of all text together */
#define HEAD_MAX_FIELDS 128

/* Offsets into the text, where every string is NUL-terminated; no value has a NUL within. */
struct head_field {
	uint32_t name, name_len, value, value_len;
	bool secret; /* there is the value of a secret in it */
};

struct head {
	struct buf text;
	/* Offsets; 0: not there. Of a request: */
	uint32_t method, target, scheme, authority;
	/* Of an answer: */
	uint32_t reason;
	bool target_secret;
	unsigned status;
	int minor; /* HTTP/1.minor */
	size_t nfields;
	struct head_field fields[HEAD_MAX_FIELDS];
};

void head_init(struct head *h);
/* Wipes the text: there may be the value of a secret in it. */
void head_done(struct head *h);
#define _cleanup_head_ _cleanup_(head_done)

static inline const char *head_text(const struct head *h, uint32_t at)
{
	return at ? h->text.data + at : NULL;
}
static inline const char *head_name(const struct head *h, size_t i)
{
	return h->text.data + h->fields[i].name;
}
static inline const char *head_value(const struct head *h, size_t i)
{
	return h->text.data + h->fields[i].value;
}

/* Copies a string in, which may be one of h's own. 0, -E2BIG or -ENOMEM. Strings got before may
 * have moved. */
int head_store(struct head *h, const char *s, size_t len, uint32_t *ret) _must_check_;
/* 0, -E2BIG (too many fields, or bytes) or -ENOMEM. */
int head_add(struct head *h, const char *name, size_t name_len, const char *value,
	     size_t value_len) _must_check_;
int head_set_value(struct head *h, size_t i, const char *value, size_t len) _must_check_;

/* Is this the field's name? (Without regard to case.) */
bool head_is(const struct head *h, size_t i, const char *name);
/* The value of the first such field, or NULL; *ret_count (may be NULL): how many there are. */
const char *head_get(const struct head *h, const char *name, size_t *ret_count);
void head_remove(struct head *h, const char *name);
/* Is token (lower case) in one of the comma-separated values of these fields? */
bool head_lists(const struct head *h, const char *name, const char *token);
/* Takes away what is meant for the next hop only, and what Connection names. */
void head_drop_hops(struct head *h);
