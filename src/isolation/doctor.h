/* The doctor: what this host can enforce for this user, tried for real, each in a child of its own.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

enum doctor_state {
	DOCTOR_OK,
	DOCTOR_WEAKER,	/* something else is in force, which covers less: see what */
	DOCTOR_MISSING, /* cannot be had here */
	DOCTOR_UNUSED,	/* not for this user */
};

struct doctor_check {
	const char *key; /* "user namespaces" */
	enum doctor_state state;
	bool required;	  /* without it the default policy is not enforced */
	char what[460];	  /* what was found */
	char remedy[420]; /* what to do about it; empty: nothing is to be done, or nothing is known
			   */
};

#define DOCTOR_CHECKS 32

struct doctor {
	struct doctor_check checks[DOCTOR_CHECKS];
	size_t n;
	bool enforceable; /* the default policy, by this user, on this host */
};

/* Tries everything; leaves nothing behind but the state directory. Takes some ten milliseconds. The
 * calling process must have a single thread. Negative only if out of memory or the like. */
int doctor_run(struct doctor *ret, struct pale_err *err) _must_check_;
void doctor_print(const struct doctor *d, FILE *out, bool colour);
/* NULL if out of memory. */
json_t *doctor_to_json(const struct doctor *d);
