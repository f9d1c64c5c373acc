/* Secrets: the box has placeholders; the value is put in here, on the way out, where the policy
 * says that it belongs, and taken out again where an answer repeats it. */
#pragma once

#include <event2/buffer.h>

#include "egress/config.h"
#include "egress/http/head.h"

#define SECRETS_MAX	  32
#define SECRETS_VALUE_MAX (4u << 10)
#define SECRETS_VALUE_MIN 6 /* shorter ones stand in answers by chance and can't be masked */

struct secrets;

/* Copies what it needs. n->nsecrets and nvalues are the same. */
int secrets_new(const struct policy_network *n, const struct config_secret *values, size_t nvalues,
		struct secrets **ret, struct pale_err *err) _must_check_;
void secrets_free(struct secrets *s); /* wipes */

/* Does a secret belong to this host? Its answers are masked then, and must not be encoded. */
bool secrets_belong(const struct secrets *s, const char *host);

/* Replaces placeholders in a request's target and fields by values, where a secret of this host has
 * its place; afterwards none may be left, in any form that is looked for. put: false where a value
 * must not go (in clear), so that any placeholder is one too many.
 * 0; -EPERM: a placeholder where it does not belong, detail says which and where; -E2BIG, -ENOMEM.
 */
int secrets_put(const struct secrets *s, const char *host, bool put, struct head *h,
		char detail[static 160]) _must_check_;

/* Is a placeholder in these bytes of a request (or ended it in them, *state is 0 at the start)? */
bool secrets_sent(const struct secrets *s, uint32_t *state, const void *data, size_t len);
/* The same in a form (application/x-www-form-urlencoded), of which any byte may be written as %XX;
 * zeroed at the start. */
struct secrets_form {
	uint32_t state;
	char held[2]; /* of a triple that is not complete */
	uint8_t nheld;
};
bool secrets_sent_form(const struct secrets *s, struct secrets_form *f, const void *data,
		       size_t len);
/* "a secret's placeholder (API_KEY) in the body", after either. */
void secrets_tell(const struct secrets *s, uint32_t state, const char *where,
		  char detail[static 160]);

/* Replaces values in an answer's fields by as many asterisks. */
void secrets_mask_head(const struct secrets *s, struct head *h);

/* The same in a stream. Bytes that could be the beginning of a value wait for what follows; but
 * up to MASK_SLACK of them do not, so that a message that happens to end with a value's first
 * letters is not held up for ever. */
#define MASK_SLACK 3
struct mask {
	const struct secrets *s; /* NULL: bytes pass unchanged */
	uint32_t state;
	struct buf held;
};
void mask_init(struct mask *m, const struct secrets *s);
void mask_done(struct mask *m);
/* Moves all of from into to, but what is held. */
int mask_move(struct mask *m, struct evbuffer *from, struct evbuffer *to) _must_check_;
int mask_add(struct mask *m, const void *data, size_t len, struct evbuffer *to) _must_check_;
/* The stream has ended: what was held is no value. */
int mask_end(struct mask *m, struct evbuffer *to) _must_check_;
